"""A bound on what sealed segments hold open: descriptors and loaded indexes.

A broker with many partitions has many thousand sealed segments and reads few of them. The least
recently used ones are let go; a fetch that is still being sent keeps its own file alive.
"""

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from ottla.env.disk import Disk, File
from ottla.storage.index import OffsetIndex, TimeIndex

Value = TypeVar("Value")

FILES_MAX: Final = 512
INDEX_BYTES_MAX: Final = 32 * 1024 * 1024


class Indexes(NamedTuple):
    offsets: OffsetIndex
    times: TimeIndex

    @property
    def size_bytes(self) -> int:
        return self.offsets.size_bytes + self.times.size_bytes


class Recent(Generic[Value]):
    """Values by key, each with a weight; the oldest go when the weights exceed the bound."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self._weight = 0
        self._values: dict[str, tuple[Value, int]] = {}

    def get(self, key: str, make: Callable[[], tuple[Value, int]]) -> Value:
        """The value of `key`; `make` gives a missing one and its weight."""
        found = self._values.pop(key, None)
        if found is None:
            found = make()
            self._weight += found[1]
        self._values[key] = found  # A dict keeps the order of insertion: last is newest.
        while self._weight > self._weight_max and len(self._values) > 1:
            oldest = next(iter(self._values))
            self.drop(oldest)
        return found[0]

    def drop(self, key: str) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._weight -= found[1]

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        self._values.clear()
        self._weight = 0


class OpenFiles:
    """What the logs of one disk share: open sealed files, and their indexes once loaded."""

    def __init__(
        self, disk: Disk, *, files_max: int = FILES_MAX, index_bytes_max: int = INDEX_BYTES_MAX
    ) -> None:
        self.disk = disk
        self._files: Recent[File] = Recent(files_max)
        # Also those that were let go, as long as somebody sends from them.
        self._alive: WeakValueDictionary[str, File] = WeakValueDictionary()
        self.indexes: Recent[Indexes] = Recent(index_bytes_max)

    def file(self, path: str) -> File:
        return self._files.get(path, lambda: (self.reopen(path), 1))

    def reopen(self, path: str, *, create: bool = False) -> File:
        """The file that readers of `path` have, if any does: its truncations concern them."""
        file = self._alive.get(path)
        if file is None:
            file = self._alive[path] = self.disk.open(path, create=create)
        return file

    def keep(self, path: str, file: File) -> None:
        """A segment was just sealed; its readers go on with the file that is open already."""
        self._files.drop(path)
        self._files.get(path, lambda: (file, 1))
        self._alive[path] = file

    def drop(self, path: str) -> None:
        """Whatever bears this name next is another file."""
        self._files.drop(path)
        self._alive.pop(path, None)
        self.indexes.drop(path)

    def close(self) -> None:
        self._files.clear()
        self._alive.clear()
        self.indexes.clear()
