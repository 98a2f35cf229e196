"""A segment's two sparse indexes, in memory as compact arrays and on disk as Kafka lays them out.

The offset index has 8 bytes an entry: the last offset of a batch, relative to the segment, and
where that batch starts. The time index has 12: the greatest timestamp so far, and the offset of
the batch that carries it. Both only grow.

Kafka maps its index files into memory and writes each entry as it is made. Here entries live in
arrays and reach the file when a segment is sealed, checkpointed or closed: an append then costs
no page fault and no ten-megabyte file for each partition, a lookup is a C bisect, and nothing is
lost, since a segment that was not closed is scanned after a crash anyway and its indexes with it.
"""

import sys
from array import array
from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.types import Offset

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
POSITION_MAX: Final = 2**31 - 1

_TIME_ENTRY: Final = Struct(">qi")


class BadIndex(ValueError):
    """An index file that Kafka's sanity rules reject: it is rebuilt from its segment."""


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: Offset
    leader_epoch: int = -1


class OffsetIndex:
    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    @classmethod
    def decode(cls, data: bytes, base_offset: Offset, log_bytes: int) -> "OffsetIndex":
        if len(data) % OFFSET_ENTRY_BYTES:
            raise BadIndex(f"{len(data)} bytes are not a multiple of {OFFSET_ENTRY_BYTES}")
        index = cls(base_offset)
        both = array("i", data)
        if sys.byteorder == "little":
            both.byteswap()
        index._offsets, index._positions = both[0::2], both[1::2]
        _check_growth(index._offsets)
        _check_growth(index._positions)
        if index._positions and index._positions[-1] >= log_bytes:
            raise BadIndex(f"it points at byte {index._positions[-1]} of {log_bytes}")
        return index

    def encode(self) -> bytes:
        both = array("i", bytes(OFFSET_ENTRY_BYTES * len(self._offsets)))
        both[0::2], both[1::2] = self._offsets, self._positions
        if sys.byteorder == "little":
            both.byteswap()
        return both.tobytes()

    def add(self, offset: Offset, position: int) -> None:
        if position > POSITION_MAX:
            return  # No entry can say it: a lookup walks there from the last one.
        self._offsets.append(offset - self.base_offset)
        self._positions.append(position)

    def position_before(self, offset: Offset) -> int:
        """Where a batch starts, from which walking on finds the batch that holds `offset`."""
        entry = bisect_right(self._offsets, min(offset - self.base_offset, RELATIVE_OFFSET_MAX))
        return self._positions[entry - 1] if entry else 0

    def truncate_to(self, offset: Offset) -> None:
        """Forget the entries at and past `offset`."""
        entry = bisect_right(self._offsets, offset - self.base_offset - 1)
        del self._offsets[entry:], self._positions[entry:]

    def clear(self) -> None:
        del self._offsets[:], self._positions[:]

    @property
    def last_position(self) -> int:
        return self._positions[-1] if self._positions else 0

    @property
    def size_bytes(self) -> int:
        return len(self._offsets) * OFFSET_ENTRY_BYTES

    def entries(self) -> list[tuple[Offset, int]]:
        return [
            (self.base_offset + relative, position)
            for relative, position in zip(self._offsets, self._positions, strict=True)
        ]


class TimeIndex:
    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    @classmethod
    def decode(cls, data: bytes, base_offset: Offset) -> "TimeIndex":
        if len(data) % TIME_ENTRY_BYTES:
            raise BadIndex(f"{len(data)} bytes are not a multiple of {TIME_ENTRY_BYTES}")
        index = cls(base_offset)
        timestamps, offsets = index._timestamps, index._offsets
        for timestamp, offset in _TIME_ENTRY.iter_unpack(data):
            timestamps.append(timestamp)
            offsets.append(offset)
        _check_growth(timestamps)
        if offsets and min(offsets[0], offsets[-1]) < 0:
            raise BadIndex("an entry lies before its segment")
        return index

    def encode(self) -> bytes:
        """Big-endian entries, woven together byte column by byte column: no loop per entry."""
        timestamps, offsets = self._timestamps[:], self._offsets[:]
        if sys.byteorder == "little":
            timestamps.byteswap()
            offsets.byteswap()
        raw_timestamps, raw_offsets = timestamps.tobytes(), offsets.tobytes()
        out = bytearray(TIME_ENTRY_BYTES * len(timestamps))
        for column in range(8):
            out[column::TIME_ENTRY_BYTES] = raw_timestamps[column::8]
        for column in range(4):
            out[8 + column :: TIME_ENTRY_BYTES] = raw_offsets[column::4]
        return bytes(out)

    def add_if_later(self, timestamp: int, offset: Offset) -> None:
        if timestamp > (self._timestamps[-1] if self._timestamps else -1):
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)

    def offset_before(self, timestamp: int) -> Offset:
        """An offset below which no record is as late as `timestamp`."""
        entry = bisect_right(self._timestamps, timestamp - 1)
        return self.base_offset + (self._offsets[entry - 1] if entry else 0)

    def truncate_to(self, offset: Offset) -> None:
        entry = bisect_right(self._offsets, offset - self.base_offset - 1)
        del self._timestamps[entry:], self._offsets[entry:]

    def clear(self) -> None:
        del self._timestamps[:], self._offsets[:]

    @property
    def last(self) -> TimestampedOffset:
        if not self._timestamps:
            return TimestampedOffset(-1, self.base_offset)
        return TimestampedOffset(self._timestamps[-1], self.base_offset + self._offsets[-1])

    @property
    def size_bytes(self) -> int:
        return len(self._timestamps) * TIME_ENTRY_BYTES

    def entries(self) -> list[tuple[int, Offset]]:
        return [
            (timestamp, self.base_offset + relative)
            for timestamp, relative in zip(self._timestamps, self._offsets, strict=True)
        ]


def last_time_entry(entry: bytes, base_offset: Offset) -> TimestampedOffset:
    """The last entry of a time index, from its 12 bytes alone."""
    if len(entry) != TIME_ENTRY_BYTES:
        return TimestampedOffset(-1, base_offset)
    timestamp, relative = _TIME_ENTRY.unpack(entry)
    return TimestampedOffset(timestamp, base_offset + relative)


def _check_growth(values: "array[int]") -> None:
    """As Kafka does, only the ends are compared: a torn or zero-filled file shows there."""
    if values and (values[0] < 0 or (len(values) > 1 and values[-1] <= values[0])):
        raise BadIndex("the entries do not grow")
