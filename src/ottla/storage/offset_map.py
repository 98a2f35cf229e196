"""Where each key was last written, in memory that is bounded before the first key comes.

A key is known by 16 bytes of its hash, an entry takes 24, as in Apache Kafka. The hash is BLAKE2,
for which nobody can make up two keys that look the same. The table is an anonymous mapping: what
no key touched takes no memory, and all of it goes back with the map.
"""

from mmap import mmap
from struct import Struct
from typing import Final

from ottla.model.types import Offset

ENTRY_BYTES: Final = 24
SLOTS_MIN: Final = 16

_ENTRY: Final = Struct(">Qqq")  # The hash in two halves, and the offset plus one: 0 is no entry.
_HALVES: Final = Struct(">Qq")


class OffsetMap:
    """Open addressing with linear probing; entries are only added, all are dropped at once."""

    def __init__(self, bytes_max: int, load_factor: float, keys_max: int) -> None:
        """Room for `keys_max` keys, or for as many as `bytes_max` allows."""
        from hashlib import blake2b  # Slow to load, and only a broker that cleans needs it.

        assert 0 < load_factor <= 1, "a share of the table"
        wanted = int(keys_max / load_factor) + 1
        self._slots = max(SLOTS_MIN, min(wanted, bytes_max // ENTRY_BYTES))
        self._keys_max = min(int(self._slots * load_factor), self._slots - 1)
        self._table = mmap(-1, self._slots * ENTRY_BYTES)
        self._hash = blake2b
        self._count = 0
        self.end_offset: Offset = 0  # Every record below it is in the map, if it has a key.

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        return self._count >= self._keys_max

    @property
    def size_bytes(self) -> int:
        return self._slots * ENTRY_BYTES

    def put(self, key: bytes, offset: Offset) -> None:
        """`key` was written at `offset`, which is later than all before. Not for a full map."""
        high, low = _HALVES.unpack(self._hash(key, digest_size=16).digest())
        place, stored = self._find(high, low)
        if not stored:
            assert self._count < self._keys_max, "a full map takes no key"
            self._count += 1
        _ENTRY.pack_into(self._table, place, high, low, offset + 1)

    def latest(self, key: bytes) -> Offset:
        high, low = _HALVES.unpack(self._hash(key, digest_size=16).digest())
        return self._find(high, low)[1] - 1

    def _find(self, high: int, low: int) -> tuple[int, int]:
        """Where the entry of this hash is or belongs, and the offset plus one in it, or 0."""
        table, slots, unpack_from = self._table, self._slots, _ENTRY.unpack_from
        slot = high % slots
        while True:
            place = slot * ENTRY_BYTES
            known_high, known_low, stored = unpack_from(table, place)
            if not stored or (known_high == high and known_low == low):
                return place, stored
            slot = slot + 1 if slot + 1 < slots else 0
