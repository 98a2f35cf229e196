"""Taking a log's files away: renamed first and removed later, as Kafka does.

A rename costs the loop next to nothing; freeing a large file does not, so a worker removes them.
"""

from collections.abc import Iterable
from contextlib import suppress
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

    def take_due(self, now: Millis) -> list[str]:
        """Paths of files whose delay is over, for `remove_paths`. They are named once."""
        due = [path for due_ms, path in self._due if due_ms <= now]
        self._due = [entry for entry in self._due if entry[0] > now]
        return due

    def rename_snapshots_past(self, offset: Offset) -> tuple[list[Offset], bool]:
        """Those that stay, and whether any went: then the caller syncs the directory."""
        snapshots = snapshots_in(self._disk.list(self._directory))
        kept = [snapshot for snapshot in snapshots if snapshot <= offset]
        for snapshot in snapshots[len(kept) :]:
            path = f"{self._directory}/{file_name(snapshot, PRODUCER_SNAPSHOT)}"
            self._disk.rename(path, path + DELETED)
            self._due.append((0, path + DELETED))
        return kept, len(kept) < len(snapshots)


def remove_paths(disk: Disk, paths: Iterable[str]) -> None:
    """For a worker: remove files, and directories with all that is in them.

    Those that somebody else removed before are passed over.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            if disk.is_directory(path):
                remove_paths(disk, [f"{path}/{name}" for name in disk.list(path)])
                disk.remove_directory(path)
            else:
                disk.remove(path)
