"""Taking a log's files away: renamed first and removed later, as Kafka does, or at once."""

from typing import Final

from ottla.env.disk import Disk
from ottla.model.types import Millis, Offset
from ottla.storage.files import DELETED, INDEXES, LOG, PRODUCER_SNAPSHOT, file_name
from ottla.storage.producer_snapshot import snapshots_in
from ottla.storage.segment import Segment

# The log goes first: indexes without a log are swept up when the directory is next opened.
_KINDS: Final = (LOG, *INDEXES, PRODUCER_SNAPSHOT)


class Deletion:
    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._due: list[tuple[Millis, str]] = []

    def rename_away(self, segment: Segment, due_ms: Millis, *, with_snapshot: bool = True) -> None:
        """The segment is gone for readers to come; those who read it now keep their file."""
        segment.forget()
        for kind in _KINDS if with_snapshot else _KINDS[:-1]:
            path = segment.path(kind)
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED)
                self._due.append((due_ms, path + DELETED))

    def remove_due(self, now: Millis) -> None:
        kept: list[tuple[Millis, str]] = []
        for due_ms, path in self._due:
            if due_ms > now:
                kept.append((due_ms, path))
            elif self._disk.exists(path):
                self._disk.remove(path)
        self._due = kept

    def remove_now(self, segment: Segment) -> None:
        segment.forget()
        for kind in _KINDS:
            path = segment.path(kind)
            if self._disk.exists(path):
                self._disk.remove(path)

    def remove_snapshots_past(self, offset: Offset) -> int:
        """How many there were: the caller syncs the directory, lest they come back."""
        snapshots = [
            snapshot
            for snapshot in snapshots_in(self._disk.list(self._directory))
            if snapshot > offset
        ]
        for snapshot in snapshots:
            self._disk.remove(f"{self._directory}/{file_name(snapshot, PRODUCER_SNAPSHOT)}")
        return len(snapshots)
