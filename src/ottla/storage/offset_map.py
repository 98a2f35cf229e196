"""Where each key was last written, in memory that is bounded before the first key comes.

A key is known by 16 bytes of hash, and an entry takes 24, as in Apache Kafka. The hash is Python's
own, which is keyed with a secret of the process: nobody can make up keys that look the same, as
they can with MD5, and it is four times as fast. The table is an anonymous mapping: what
no key touched takes no memory, and all of it goes back with the map.
"""

from mmap import mmap
from struct import Struct
from typing import Final

from ottla.model.types import Offset

ENTRY_BYTES: Final = 24
SLOTS_MIN: Final = 16

_ENTRY: Final = Struct("=qqq")  # The hash in two halves, and the offset plus one: 0 is no entry.
_OTHER: Final = b"\x01"  # Added to a key for the second half of its hash.


class OffsetMap:
    """Open addressing with linear probing; entries are only added, all are dropped at once."""

    def __init__(self, bytes_max: int, load_factor: float, keys_max: int) -> None:
        """Room for `keys_max` keys, or for as many as `bytes_max` allows."""
        assert 0 < load_factor <= 1, "a share of the table"
        wanted = int(keys_max / load_factor) + 1
        self._slots = max(SLOTS_MIN, min(wanted, bytes_max // ENTRY_BYTES))
        self._keys_max = min(int(self._slots * load_factor), self._slots - 1)
        self._table_bytes = self._slots * ENTRY_BYTES
        self._table = mmap(-1, self._table_bytes)
        self._count = 0
        self.end_offset: Offset = 0  # Every record below it is in the map, if it has a key.

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        return self._table_bytes

    def put(self, key: bytes, offset: Offset) -> bool:
        """`key` was written at `offset`, later than all before. False if there is no room."""
        high, low = hash(key), hash(key + _OTHER)
        place, stored = self._find(high, low)
        if not stored:
            if self._count >= self._keys_max:
                return False
            self._count += 1
        _ENTRY.pack_into(self._table, place, high, low, offset + 1)
        return True

    def latest(self, key: bytes) -> Offset:
        return self._find(hash(key), hash(key + _OTHER))[1] - 1

    def _find(self, high: int, low: int) -> tuple[int, int]:
        """Where the entry of this hash is or belongs, and the offset plus one in it, or 0."""
        table, table_bytes, unpack_from = self._table, self._table_bytes, _ENTRY.unpack_from
        place = high % self._slots * ENTRY_BYTES
        while True:
            known_high, known_low, stored = unpack_from(table, place)
            if not stored or (known_high == high and known_low == low):
                return place, stored
            place += ENTRY_BYTES
            if place == table_bytes:
                place = 0
