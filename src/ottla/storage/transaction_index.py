"""The aborted transactions of a segment: Kafka's `.txnindex`, 34 bytes an entry."""

from struct import Struct
from typing import Final, NamedTuple

from ottla.model.types import Offset
from ottla.storage.index import BadIndex

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: Offset
    last_offset: Offset  # Of its abort marker.
    last_stable_offset: Offset  # As it was when the marker was written.


class TransactionIndex:
    __slots__ = ("entries",)

    def __init__(self, entries: list[AbortedTransaction] | None = None) -> None:
        self.entries = entries if entries is not None else []

    @classmethod
    def decode(cls, data: bytes, base_offset: Offset) -> "TransactionIndex":
        if len(data) % _ENTRY.size:
            raise BadIndex(f"{len(data)} bytes are not a multiple of {_ENTRY.size}")
        entries: list[AbortedTransaction] = []
        for version, *fields in _ENTRY.iter_unpack(data):
            if version > _VERSION:
                raise BadIndex(f"an entry of version {version}")
            entry = AbortedTransaction(*fields)
            if entry.last_offset < base_offset:
                raise BadIndex("an entry lies before its segment")
            entries.append(entry)
        return cls(entries)

    def encode(self) -> bytes:
        return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self.entries)

    def add(self, aborted: AbortedTransaction) -> None:
        assert not self.entries or self.entries[-1].last_offset < aborted.last_offset, (
            "markers are written in order"
        )
        self.entries.append(aborted)

    def truncate_to(self, offset: Offset) -> None:
        self.entries = [entry for entry in self.entries if entry.last_offset < offset]

    def collect(self, start: Offset, end: Offset, into: list[AbortedTransaction]) -> bool:
        """Those that touch [start, end); True if no later segment can hold another one."""
        for entry in self.entries:
            if entry.last_offset >= start and entry.first_offset < end:
                into.append(entry)
            if entry.last_stable_offset >= end:
                return True
        return False
