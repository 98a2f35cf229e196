"""A disk that can crash: what was synced survives, what was not may be lost, torn or reordered.

Every file and every directory has what is on the platter and an ordered list of what is not yet.
A kill keeps the page cache; a power cut keeps any part of it that a real disk might. Faults (EIO,
a full disk, an fsync that lies, flipped bits) are set by the test or by the simulation's seed.
The same seed gives the same disk.
"""

import errno
from collections.abc import Sequence
from random import Random

from ottla.env.disk import Buffer, File, Lock
from ottla.simulation.world.disk_nodes import Directory, Inode


class Crashed(BaseException):
    """The process died in the middle of a disk operation. Nothing may catch this on the way."""


class SimulatedFile:
    __slots__ = ("__weakref__", "_disk", "_generation", "_inode", "path", "truncations")

    def __init__(self, disk: "SimulatedDisk", path: str, inode: Inode) -> None:
        self.path = path
        self.truncations = 0
        self._disk = disk
        self._inode = inode
        self._generation = disk.generation
        disk.open_files[id(self)] = inode

    @property
    def size(self) -> int:
        return len(self._inode.data)

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.begin("append", self.path)
        data = b"".join(buffers)
        room = self._disk.room_for(data)
        try:
            crashes = self._disk.step("append", self.path, self._generation)
        except OSError:
            self._write_part(data[:room])
            raise
        if crashes:
            self._write_part(data[:room])
            raise Crashed
        self._inode.write(data[:room])
        self._disk.used_bytes += min(len(data), room)
        if room < len(data):
            raise OSError(errno.ENOSPC, "no space left on the simulated disk", self.path)

    def _write_part(self, data: bytes) -> None:
        """Killed or failed inside the call: some first part of it reached the page cache."""
        written = self._disk.random.randint(0, len(data))
        self._inode.write(data[:written])
        self._disk.used_bytes += written

    def read(self, position: int, size: int) -> bytes:
        self._disk.begin("read", self.path)
        self._disk.check_alive(self._generation)
        self._disk.fail_if_told("read", self.path)
        return bytes(self._inode.data[position : position + size])

    def truncate(self, size: int) -> None:
        self._disk.begin("truncate", self.path)
        self.truncations += 1
        crashes = self._disk.step("truncate", self.path, self._generation)
        if not crashes or self._disk.random.random() < 0.5:
            self._disk.used_bytes -= len(self._inode.data) - size
            self._inode.truncate(size)
        if crashes:
            raise Crashed

    def sync(self) -> None:
        self._disk.begin("sync", self.path)
        try:
            crashes = self._disk.step("sync", self.path, self._generation)
        except OSError:
            # The kernel marks the pages clean all the same: the next sync succeeds and saves none.
            self._inode.forget_pending()
            raise
        if crashes:
            raise Crashed
        self._inode.sync()

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a simulated file has no descriptor", self.path)

    def close(self) -> None:
        if self._generation == self._disk.generation:
            self._disk.open_files.pop(id(self), None)

    __del__ = close  # As a real file: the last holder closes it.


class SimulatedLock:
    def __init__(self, disk: "SimulatedDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locked.discard(self._path)


class SimulatedDisk:
    def __init__(self, random: Random, *, capacity_bytes: int = 2**62) -> None:
        self.random = random
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self.now_ms = 0  # What a file's modification time is read from.
        self.operations = 0  # Counts what changes or syncs something.
        self.crash_at: int | None = None  # The number of the operation that kills the process.
        self.fail_at: tuple[int, int] | None = None  # That of one which fails, and with what.
        self.is_observed = False  # By someone who must not meet what the process shall meet.
        self.generation = 0  # Files of an earlier life are dead.
        self.locked: set[str] = set()
        self.open_files: dict[int, Inode] = {}
        self._root = Directory()
        self._mounts = 0
        self._is_down = False
        self._failures: list[tuple[str, str, int]] = []

    # What tests and the simulation do to it.

    def fail(self, operation: str, error: int = errno.EIO, *, path_contains: str = "") -> None:
        """The next such operation on such a path fails with `error`."""
        self._failures.append((operation, path_contains, error))

    @property
    def orphaned_files(self) -> int:
        """How many files are open that no directory names any more."""
        named = {id(inode) for inode in self._root.inodes()}
        return sum(1 for inode in self.open_files.values() if id(inode) not in named)

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        self._inode(path).flip_bit(position, bit)

    def peek(self, path: str) -> bytes:
        """Content of a file, empty if there is none; no operation of the process."""
        node = self._find(path)
        return bytes(node.data) if isinstance(node, Inode) else b""

    def names(self, path: str) -> list[str]:
        """Names in a directory, none if there is none; no operation of the process."""
        node = self._find(path)
        return sorted(node.entries) if isinstance(node, Directory) else []

    def kill(self) -> None:
        """The process is gone; the page cache is not. The disk can be used again at once."""
        self.generation += 1
        self.locked.clear()
        self.open_files.clear()
        self._is_down = False
        self.crash_at = None

    def cut_power(self) -> None:
        """The machine is gone: what was not synced is lost, wholly or partly."""
        self._root.lose_power(self.random)
        self._mounts += 1
        self.used_bytes = self._root.size_bytes()
        self.kill()

    def begin(self, operation: str, path: str) -> None:
        """Called before anything of an operation happens."""

    def step(self, operation: str, path: str, generation: int | None = None) -> bool:
        """Count an operation; True if the process dies in it. Raises a failure that was set."""
        self.check_alive(generation)
        self.fail_if_told(operation, path)
        self.operations += 1
        if self.fail_at is not None and self.operations == self.fail_at[0]:
            raise OSError(self.fail_at[1], f"simulated failure of {operation}", path)
        if self.crash_at is not None and self.operations >= self.crash_at:
            self._is_down = True
            return True
        return False

    def check_alive(self, generation: int | None = None) -> None:
        if self._is_down or generation not in (None, self.generation):
            raise Crashed

    def fail_if_told(self, operation: str, path: str) -> None:
        if self.is_observed:
            return
        for index, (failing, part, error) in enumerate(self._failures):
            if failing == operation and part in path:
                del self._failures[index]
                raise OSError(error, f"simulated failure of {operation}", path)

    def room_for(self, data: bytes) -> int:
        return min(len(data), max(0, self.capacity_bytes - self.used_bytes))

    # The disk seam.

    def open(self, path: str, *, create: bool = False) -> File:
        self.begin("open", path)
        self.check_alive()
        self.fail_if_told("open", path)
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            node = Inode(self.now_ms)
            self._change(parent, "create", path, name, node)
        if not isinstance(node, Inode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return SimulatedFile(self, path, node)

    def read(self, path: str) -> bytes:
        self.begin("read", path)
        self.check_alive()
        self.fail_if_told("read", path)
        return bytes(self._inode(path).data)

    def exists(self, path: str) -> bool:
        self.check_alive()
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        self.check_alive()
        return isinstance(self._find(path), Directory)

    def size(self, path: str) -> int:
        self.check_alive()
        return len(self._inode(path).data)

    def modified_ms(self, path: str) -> int:
        self.check_alive()
        return self._inode(path).modified_ms

    def list(self, path: str) -> list[str]:
        self.begin("list", path)
        self.check_alive()
        return sorted(self._directory(path).entries)

    def make_directory(self, path: str) -> None:
        self.begin("make_directory", path)
        self.check_alive()
        parent, name = self._root, ""
        walked = ""
        for name in path.strip("/").split("/"):
            walked += f"/{name}"
            node = parent.entries.get(name)
            if node is None:
                node = Directory()
                self._change(parent, "create", walked, name, node)
            if not isinstance(node, Directory):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", walked)
            parent = node

    def rename(self, path: str, new_path: str) -> None:
        self.begin("rename", path)
        parent, name = self._parent(path)
        new_parent, new_name = self._parent(new_path)
        assert parent is new_parent, "nothing here moves files between directories"
        if name not in parent.entries:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        crashes = self.step("rename", path)
        if not crashes or self.random.random() < 0.5:
            parent.rename(name, new_name)
        if crashes:
            raise Crashed

    def remove(self, path: str) -> None:
        self.begin("remove", path)
        parent, name = self._parent(path)
        self.used_bytes -= len(self._inode(path).data)
        self._change(parent, "remove", path, name, None)

    def remove_directory(self, path: str) -> None:
        self.begin("remove_directory", path)
        if self._directory(path).entries:
            raise OSError(errno.ENOTEMPTY, "directory not empty", path)
        parent, name = self._parent(path)
        self._change(parent, "remove", path, name, None)

    def sync_directory(self, path: str) -> None:
        self.begin("sync_directory", path)
        directory = self._directory(path)
        if self.step("sync_directory", path):
            raise Crashed
        directory.sync()

    def sync_filesystem(self, path: str) -> bool:
        self.begin("sync_filesystem", path)
        if self.step("sync_filesystem", path):
            raise Crashed
        self._root.sync_all()
        return True

    def free_bytes(self, path: str) -> int:
        self._directory(path)
        return max(0, self.capacity_bytes - self.used_bytes)

    def total_bytes(self, path: str) -> int:
        self._directory(path)
        return self.capacity_bytes

    def mount_id(self, path: str) -> str:
        self._directory(path)
        return f"boot-1/mount-{self._mounts}"

    def lock(self, path: str) -> Lock:
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        self.open(path, create=True)
        self.locked.add(path)
        return SimulatedLock(self, path)

    def _change(
        self,
        parent: Directory,
        operation: str,
        path: str,
        name: str,
        node: Inode | Directory | None,
    ) -> None:
        crashes = self.step(operation, path)
        if not crashes or self.random.random() < 0.5:
            parent.put(name, node)
        if crashes:
            raise Crashed

    def _find(self, path: str) -> Inode | Directory | None:
        node: Inode | Directory | None = self._root
        for name in path.strip("/").split("/"):
            if not isinstance(node, Directory):
                return None
            node = node.entries.get(name) if name else node
        return node

    def _inode(self, path: str) -> Inode:
        node = self._find(path)
        if not isinstance(node, Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return node

    def _directory(self, path: str) -> Directory:
        self.check_alive()
        node = self._find(path)
        if not isinstance(node, Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        head, _, name = path.rstrip("/").rpartition("/")
        return (self._directory(head) if head else self._root), name
