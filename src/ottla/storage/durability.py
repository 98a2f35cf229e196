"""How far a log is synced, and what the next sync of it has to include.

A sync is three steps, so that a worker can do the second: `begin_sync` on the event loop, `sync` of
what it returned, and `synced_to` on the loop again.
"""

from collections.abc import Iterable

from ottla.model.types import Offset
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.files import LEADER_EPOCHS
from ottla.storage.segments import Segments
from ottla.storage.sync_work import EpochsToWrite, Syncable


class Durability:
    def __init__(self, files: Segments, epochs: LeaderEpochs, recovery_point: Offset) -> None:
        self.recovery_point = recovery_point  # Everything below it is synced.
        self._files = files
        self._epochs = epochs
        self._syncing_end: Offset = 0  # What the sync under way can vouch for.

    def is_behind(self, end_offset: Offset) -> bool:
        """True if a power loss now would take something from a log that ends there."""
        is_behind = self.recovery_point < end_offset or self._epochs.is_dirty
        return is_behind or bool(self._files.unsynced)

    def begin_sync(self, end_offset: Offset) -> list[Syncable]:
        """What must be synced so that everything below `end_offset`, the log's end, survives.

        When all are synced, call `synced_to` with the same offset.
        """
        work, self._files.unsynced = self._files.unsynced, []
        if self._epochs.is_dirty:
            path = f"{self._files.directory}/{LEADER_EPOCHS}"
            work.append(EpochsToWrite(self._files.disk, path, self._epochs.entries()))
            self._epochs.is_dirty = False
        self._syncing_end = end_offset
        file = self._files.active.file
        if self.recovery_point < end_offset and file is not None:
            work.append(file)
        return work

    def synced_to(self, offset: Offset) -> None:
        self.recovery_point = max(self.recovery_point, min(offset, self._syncing_end))
        self.first_name_synced()

    def truncated_to(self, offset: Offset) -> None:
        """Also a sync under way vouches for nothing past it."""
        self.recovery_point = min(self.recovery_point, offset)
        self._syncing_end = min(self._syncing_end, offset)

    def sync_also(self, work: Iterable[Syncable]) -> None:
        """Include these in the next sync: what the log's own files depend on."""
        self._files.unsynced += work

    def first_name_to_sync(self) -> Syncable | None:
        """None if the name of the first segment is durable; else call `first_name_synced` then.

        Else the first roll syncs it, on the loop.
        """
        is_durable = self._files.is_first_name_durable
        return None if is_durable else self._files.directory_to_sync()

    def first_name_synced(self) -> None:
        self._files.is_first_name_durable = True
