"""What has to reach the disk before a recovery point may move: things that know how to sync.

A worker thread calls `sync` on each; none of them touches a Log.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from ottla.env.disk import Disk
from ottla.env.errnos import FULL
from ottla.storage.checkpoint import (
    EpochEntry,
    encode_epochs,
    put_in_place,
    replace_file,
    write_beside,
)

TOGETHER_MIN: Final = 64  # Below, the rest of the disk's dirty pages may cost more than we save.


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


class NotWritten(OSError):
    """There was no room for a small file: nothing that was written before is lost."""


class EpochsToWrite:
    """The leader-epoch checkpoint, as it was when this was made."""

    __slots__ = ("_disk", "_entries", "_path")

    def __init__(self, disk: Disk, path: str, entries: list[EpochEntry]) -> None:
        self._disk = disk
        self._path = path
        self._entries = entries

    def sync(self) -> None:
        try:
            replace_file(self._disk, self._path, encode_epochs(self._entries))
        except FileNotFoundError:
            pass  # The topic was deleted meanwhile.
        except OSError as error:
            if error.errno in FULL:
                raise NotWritten(*error.args) from error
            raise

    def write(self) -> None:
        """The same in two steps, for who syncs many at once: beside its place …"""
        with suppress(FileNotFoundError):
            write_beside(self._disk, self._path, encode_epochs(self._entries))

    def publish(self) -> None:
        """… and, once that is synced, into it."""
        with suppress(FileNotFoundError):
            put_in_place(self._disk, self._path)


def sync_all(work: Iterable[Syncable]) -> None:
    """For a worker: an OSError from it takes the log directory offline, and is never retried."""
    for each in work:
        each.sync()


def sync_together(disk: Disk, path: str, work: Sequence[Syncable]) -> None:
    """Sync all of it, which lies under `path`: one by one, or, if it is much, the whole disk.

    A thousand partitions are some five thousand files: half a minute one by one, a moment at once.
    """
    if len(work) < TOGETHER_MIN:
        sync_all(work)
        return
    drafts = [each for each in work if isinstance(each, EpochsToWrite)]
    for draft in drafts:
        draft.write()
    if not disk.sync_filesystem(path):
        sync_all(work)
        return
    for draft in drafts:
        draft.publish()
    disk.sync_filesystem(path)
