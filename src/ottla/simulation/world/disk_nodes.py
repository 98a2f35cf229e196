"""Files and directories of the simulated disk: what is on the platter, and what is not yet."""

from collections.abc import Iterator
from random import Random

SECTOR_BYTES = 512
PAGE_BYTES = 4096


class Inode:
    """A file's bytes as the process sees them, as they are durable, and the steps between."""

    __slots__ = ("_durable", "_pending", "data", "modified_ms")

    def __init__(self, now_ms: int) -> None:
        self.data = bytearray()
        self.modified_ms = now_ms
        self._durable = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []  # A write at, or a truncation to.

    def write(self, data: bytes) -> None:
        self._pending.append((len(self.data), data))
        self.data += data

    def truncate(self, size: int) -> None:
        self._pending.append((size, None))
        _truncate(self.data, size)

    def sync(self) -> None:
        for position, data in self._pending:
            _apply(self._durable, position, data)
        self._pending.clear()

    def forget_pending(self) -> None:
        """They count as written, but are not: what a failed fsync leaves."""
        self._pending.clear()

    def flip_bit(self, position: int, bit: int) -> None:
        self.data[position] ^= 1 << bit
        if position < len(self._durable):
            self._durable[position] ^= 1 << bit
        for index, (start, data) in enumerate(self._pending):
            if data is not None and start <= position < start + len(data):
                changed = bytearray(data)
                changed[position - start] ^= 1 << bit
                self._pending[index] = (start, bytes(changed))

    def lose_power(self, random: Random) -> None:
        full_size = len(self.data)
        pending, self._pending = self._pending, []
        if pending:
            if random.random() < 0.5:  # In order, up to some point, which may be torn.
                kept = random.randint(0, len(pending))
                for position, data in pending[:kept]:
                    _apply(self._durable, position, data)
                if kept < len(pending):
                    _apply_torn(self._durable, *pending[kept], random)
            else:  # Any of them, in any state.
                for position, data in pending:
                    chance = random.random()
                    if chance < 0.4:
                        _apply(self._durable, position, data)
                    elif chance < 0.6:
                        _apply_torn(self._durable, position, data, random)
            if random.random() < 0.2 and len(self._durable) < full_size:
                # The new length reached the disk, and the bytes did not.
                self._durable += bytes(full_size - len(self._durable))
        self.data = bytearray(self._durable)


class Directory:
    """Names, as they are seen and as they are durable; the bytes behind them are not its affair."""

    __slots__ = ("_durable", "_pending", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Directory] = {}
        self._durable: dict[str, Inode | Directory] = {}
        self._pending: list[tuple[str, str, Inode | Directory | None]] = []

    def put(self, name: str, node: "Inode | Directory | None") -> None:
        """Give the name to `node`, or take it away."""
        _name(self.entries, name, "", node)
        self._pending.append((name, "", node))

    def rename(self, name: str, new_name: str) -> None:
        _name(self.entries, name, new_name, None)
        self._pending.append((name, new_name, None))

    def sync(self) -> None:
        for change in self._pending:
            _name(self._durable, *change)
        self._pending.clear()

    def sync_all(self) -> None:
        """This directory and everything below it."""
        self.sync()
        for node in self.entries.values():
            if isinstance(node, Directory):
                node.sync_all()
            else:
                node.sync()

    def lose_power(self, random: Random) -> None:
        pending, self._pending = self._pending, []
        if random.random() < 0.5:
            pending = pending[: random.randint(0, len(pending))]
        else:
            pending = [change for change in pending if random.random() < 0.5]
        for change in pending:
            _name(self._durable, *change)
        self.entries = dict(self._durable)
        for name in sorted(self.entries):
            self.entries[name].lose_power(random)

    def inodes(self) -> Iterator[Inode]:
        """The files in this directory and below it."""
        for node in self.entries.values():
            if isinstance(node, Directory):
                yield from node.inodes()
            else:
                yield node

    def size_bytes(self) -> int:
        return sum(len(inode.data) for inode in self.inodes())


def _name(
    entries: dict[str, Inode | Directory], name: str, new_name: str, node: Inode | Directory | None
) -> None:
    if new_name:
        if name in entries:  # If its creation was lost, so is the rename.
            entries[new_name] = entries.pop(name)
    elif node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def _truncate(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data += bytes(size - len(data))


def _apply(image: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        _truncate(image, position)
        return
    if len(image) < position:
        image += bytes(position - len(image))  # What was to come before it is a hole.
    image[position : position + len(data)] = data


def _apply_torn(image: bytearray, position: int, data: bytes | None, random: Random) -> None:
    """Some sectors or pages of a write; a truncation happens or does not."""
    if data is None:
        if random.random() < 0.5:
            _truncate(image, position)
        return
    unit = random.choice((SECTOR_BYTES, PAGE_BYTES))
    starts = [position, *range((position // unit + 1) * unit, position + len(data), unit)]
    if random.random() < 0.5:
        starts = starts[: random.randint(0, len(starts))]
    else:
        starts = [start for start in starts if random.random() < 0.5]
    for start in starts:
        end = min((start // unit + 1) * unit, position + len(data))
        _apply(image, start, data[start - position : end - position])
