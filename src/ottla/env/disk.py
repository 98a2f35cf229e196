"""The disk seam: the file operations that a log needs, and their real implementation.

All calls block. `ottla.simulation.world.disk` has the same operations with faults and crashes.
"""

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from ottla.env import mounts, system
from ottla.env.descriptors import opened

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """An open, append-only file. Its bytes stay readable while it is referenced, even if
    unlinked.
    """

    @property
    def path(self) -> str:
        """The path at opening; a later rename does not change it."""

    @property
    def size(self) -> int: ...

    @property
    def truncations(self) -> int:
        """Number of truncations since it was opened."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Append all buffers in order; after an OSError an unknown part of them is written."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File: ...
    def read(self, path: str) -> bytes: ...
    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def list(self, path: str) -> list[str]: ...
    def make_directory(self, path: str) -> None: ...
    def rename(self, path: str, new_path: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def sync_filesystem(self, path: str) -> bool:
        """Sync the whole file system of `path`; False if the system does not support it."""

    def free_bytes(self, path: str) -> int: ...
    def total_bytes(self, path: str) -> int: ...
    def mount_id(self, path: str) -> str:
        """Changes when the machine restarts or the disk of `path` is mounted; "" if unknown."""

    def lock(self, path: str) -> Lock:
        """Lock the file for this process; raises BlockingIOError if another one holds it."""


class RealFile:
    __slots__ = ("__weakref__", "_descriptor", "path", "size", "truncations")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.size = os.fstat(descriptor).st_size
        self.truncations = 0
        self._descriptor = descriptor

    def append(self, buffers: Sequence[Buffer]) -> None:
        expected = sum(map(len, buffers))
        if len(buffers) <= system.IOVEC_MAX:
            written = os.writev(self._descriptor, buffers)
            if written == expected:
                self.size += written
                return
            self.size += written
            buffers = _rest(buffers, written)
        self._append_in_parts(buffers)

    def _append_in_parts(self, buffers: Sequence[Buffer]) -> None:
        while buffers:
            written = os.writev(self._descriptor, buffers[: system.IOVEC_MAX])
            self.size += written
            buffers = _rest(buffers, written)

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or position + len(data) >= self.size:
            return data
        parts = [data]
        have = len(data)
        # A single read returns at most 2 GiB, and may be interrupted by a signal.
        while have < size:
            data = os.pread(self._descriptor, size - have, position + have)
            if not data:
                break
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        self.truncations += 1
        os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        system.sync_data(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        # A fetch in progress may outlive its segment: the last reference closes the file.
        with suppress(OSError, AttributeError):
            self.close()


class RealLock:
    """A POSIX record lock, as Java uses, so that it also excludes Apache Kafka."""

    _held: Final[set[str]] = set()  # Record locks do not exclude two brokers in one process.

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        if self._path in self._held:
            raise BlockingIOError(f"{path} is locked by this process")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise BlockingIOError(f"{path} is locked by another process") from error
        self._held.add(self._path)

    def release(self) -> None:
        if self._path in self._held:
            self._held.discard(self._path)
            os.close(self._descriptor)


class RealDisk:
    def open(self, path: str, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        flags |= os.O_CREAT if create else 0
        return RealFile(path, opened(os.open, path, flags, 0o644))

    def read(self, path: str) -> bytes:
        descriptor = opened(os.open, path, os.O_RDONLY | os.O_CLOEXEC)  # Half the time of `open`.
        try:
            size = os.fstat(descriptor).st_size
            parts = []
            while data := os.read(descriptor, size + 1):
                parts.append(data)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def list(self, path: str) -> list[str]:
        return sorted(opened(os.listdir, path))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, path: str, new_path: str) -> None:
        os.replace(path, new_path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = opened(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_filesystem(self, path: str) -> bool:
        descriptor = opened(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return system.sync_filesystem(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def mount_id(self, path: str) -> str:
        return mounts.mount_id(path)

    def lock(self, path: str) -> Lock:
        return RealLock(path)


def real_disk() -> Disk:
    return RealDisk()


def _rest(buffers: Sequence[Buffer], written: int) -> list[Buffer]:
    """The buffers that remain after a short write."""
    for index, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[index + 1 :]]
        written -= len(buffer)
    return []
