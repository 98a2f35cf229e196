"""What has to reach the disk before a recovery point may move: things that know how to sync.

A worker thread calls `sync` on each; none of them touches a Log.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from ottla.env.disk import Disk
from ottla.storage.checkpoint import EpochEntry, encode_epochs, replace_file


class Syncable(Protocol):
    def sync(self) -> None: ...


class PathToSync:
    """A small file that was written and closed. Retention may have removed it since."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def sync(self) -> None:
        with suppress(FileNotFoundError):
            file = self._disk.open(self._path)
            try:
                file.sync()
            finally:
                file.close()


class DirectoryToSync:
    __slots__ = ("_disk", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def sync(self) -> None:
        with suppress(FileNotFoundError):
            self._disk.sync_directory(self._path)


class EpochsToWrite:
    """The leader-epoch checkpoint, as it was when this was made."""

    __slots__ = ("_disk", "_entries", "_path")

    def __init__(self, disk: Disk, path: str, entries: list[EpochEntry]) -> None:
        self._disk = disk
        self._path = path
        self._entries = entries

    def sync(self) -> None:
        with suppress(FileNotFoundError):  # The topic was deleted meanwhile.
            replace_file(self._disk, self._path, encode_epochs(self._entries))


def sync_all(work: Iterable[Syncable]) -> None:
    """For a worker: an OSError from it takes the log directory offline, and is never retried."""
    for each in work:
        each.sync()
