"""The metadata log of this node: `__cluster_metadata-0` with its snapshots and `quorum-state`.

Implements the quorum's `LogView`, and keeps the voters that the log names. Blocking code behind
the disk seam; syncs go through a worker. Only the quorum truncates synced records.
"""

from collections.abc import Iterator

from ottla.broker.controller.election_state_file import ElectionStateFile
from ottla.broker.controller.metadata_log_directory import open_synced_log, prepare_directory
from ottla.broker.controller.metadata_log_reader import (
    Numbered,
    batches_between,
    next_batches,
    read_batches,
    records_between,
)
from ottla.broker.controller.metadata_log_settings import MetadataLogSettings
from ottla.broker.controller.metadata_snapshots import MetadataSnapshots
from ottla.broker.controller.voter_records import VoterRecords
from ottla.env.environment import Environment
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.model.types import Offset, WallTime
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.records.batch import Batch
from ottla.storage.log import Log
from ottla.storage.sync_work import sync_all


class MetadataLog:
    def __init__(self, env: Environment, settings: MetadataLogSettings) -> None:
        """Create or check the directory; `load_snapshot` and `open` follow, in this order."""
        self._env = env
        self.settings = settings
        self.directory = settings.directory
        prepare_directory(env.disk, settings)
        self.snapshots = MetadataSnapshots(env.disk, self.directory)
        self._voter_records = VoterRecords(settings)
        self.history = self._voter_records.history
        self.election_state = ElectionStateFile(env, self.directory, self.history)
        self.storage: Log  # Set by `open`.
        self.is_open = False
        self.last_timestamp = 0
        self.growth_bytes = 0  # Found beyond the newest snapshot by `open`, or appended since.

    @property
    def end_offset(self) -> Offset:
        return self.storage.end_offset

    @property
    def log_start_offset(self) -> Offset:
        return self.storage.log_start_offset

    @property
    def last_epoch(self) -> int:
        if self.storage.epochs.latest >= 0:
            return self.storage.epochs.latest
        newest = self.snapshots.newest
        return newest.epoch if newest is not None else 0

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None:
        return OffsetAndEpoch(*self.snapshots.ids[0]) if self.snapshots.ids else None

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return OffsetAndEpoch(*self.snapshots.ids[-1]) if self.snapshots.ids else None

    def epoch_end(self, epoch: int) -> OffsetAndEpoch | None:
        end = self.storage.end_offset
        for known, start in reversed(self.storage.epochs.entries()):
            if known <= epoch:
                return OffsetAndEpoch(end, known)
            end = start
        return None

    def epoch_of(self, offset: Offset) -> int:
        """Leader epoch of the record at `offset`; the last epoch if the log does not know it."""
        epoch = self.storage.epochs.epoch_of(offset)
        return epoch if epoch >= 0 else self.last_epoch

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole batches, starting with the one that contains `offset`; at least one."""
        return read_batches(self.storage, offset, bytes_max)

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, bytes_max: int
    ) -> tuple[bytes, int] | None:
        return self.snapshots.read_piece(SnapshotId(*snapshot), position, bytes_max)

    def load_snapshot(self) -> Iterator[Numbered]:
        """Every record of the newest snapshot; adds its voters to `history`."""
        newest = self.snapshots.newest
        if newest is None:
            return
        snapshot = self.snapshots.read(newest)
        self._voter_records.snapshot_read(newest.end_offset, snapshot)
        self.last_timestamp = snapshot.last_timestamp
        for record in snapshot.records:
            yield newest.end_offset - 1, record

    def open(self) -> None:
        """Open the log after its newest snapshot; adds the voters that it names to `history`."""
        newest = self.snapshots.newest
        start = newest.end_offset if newest is not None else 0
        disk, now = self._env.disk, self._env.clock.wall()
        storage = open_synced_log(disk, self.settings, start, now)
        # The log starts at the end of a snapshot, even if its first segment starts earlier; the
        # epochs of records before it are dropped.
        ids = [i for i in self.snapshots.ids if i.end_offset >= storage.log_start_offset]
        self.snapshots.ids = ids
        if ids:
            storage.advance_log_start(ids[0].end_offset)
        # Not before: a full disk may end this start halfway.
        self.storage, self.is_open = storage, True
        for path, position, batch in batches_between(storage, start, self.end_offset):
            self._note(batch, path, position)

    def records(self, start: Offset, end: Offset) -> Iterator[Numbered]:
        """Every metadata record with its offset; `start` and `end` are at batch boundaries."""
        return records_between(self.storage, start, end)

    def append(self, batch: Batch, now: WallTime) -> None:
        """Write one batch to the page cache. An OSError leaves the log as it was."""
        self.storage.append([batch], now)
        self._note(batch, self.directory, 0)

    def _note(self, batch: Batch, path: str, position: int) -> None:
        self.last_timestamp = batch.max_timestamp
        self.growth_bytes += batch.size
        self._voter_records.batch_read(batch, path, position)

    def fetched(self, data: bytes) -> Iterator[Batch]:
        """Batches that the leader sent, one at a time; Damaged if one does not continue this log.

        The caller appends and syncs each before it takes the next: so after a power cut only the
        last batch can be torn, and damage before it is never mistaken for that.
        """
        return next_batches(self, data)

    def truncate_to(self, offset: Offset) -> None:
        self.storage.truncate_to(offset)
        self.history.truncated(offset)

    async def sync(self) -> Offset:
        """Sync the log in a worker; returns the offset up to which it is synced."""
        end = self.storage.end_offset
        await self._env.workers.run(sync_all, self.storage.durability.begin_sync(end))
        self.storage.durability.synced_to(end)
        return end

    async def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Replace the log and all other snapshots by a snapshot whose pieces are all fetched."""
        snapshot_id = SnapshotId(*snapshot)
        await self._env.workers.run(self.snapshots.finish_pieces, snapshot_id)
        gone, self.snapshots.ids = self.snapshots.ids, [snapshot_id]
        self.storage.start_at(snapshot_id.end_offset)
        await self.sync()
        others = [other for other in gone if other != snapshot_id]
        await self._env.workers.run(self.snapshots.delete, others)

    def close(self) -> None:
        self.is_open = False
        self.storage.close()

    def abandon(self) -> None:
        """Close the files without syncing them."""
        self.is_open = False
        self.storage.abandon()
