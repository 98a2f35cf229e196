"""Records with keys in a compacted topic: what was sent, and what any complete read must show.

Every record bears an id in a header, since a tombstone has no value to know it by. A complete read
shows the newest record of each key: no older one after it is gone, and none at all only where the
newest record is, or may be, a tombstone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.types import Offset
from ottla.simulation.history.history import UNKNOWN_OFFSET, Violation


class Found(NamedTuple):
    """A record as a consumer got it."""

    offset: Offset
    id: bytes
    key: bytes
    value: bytes | None


@dataclass(slots=True)
class KeyedSend:
    key: bytes
    value: bytes | None  # None: a tombstone.
    producer: str
    is_acknowledged: bool = False
    offset: Offset = UNKNOWN_OFFSET


@dataclass(slots=True)
class KeyedHistory:
    sent: dict[bytes, KeyedSend] = field(default_factory=dict)
    seen: dict[Offset, bytes] = field(default_factory=dict)  # Ids of records that were read.
    passes: int = 0

    def sending(self, id_: bytes, send: KeyedSend) -> None:
        self.sent[id_] = send

    def acknowledged(self, id_: bytes, offset: Offset) -> None:
        send = self.sent[id_]
        send.is_acknowledged, send.offset = True, offset

    def newest(self) -> dict[bytes, KeyedSend]:
        """Of each key, the acknowledged record with the highest offset, as of now."""
        newest: dict[bytes, KeyedSend] = {}
        for send in self.sent.values():
            before = newest.get(send.key)
            if send.is_acknowledged and (before is None or send.offset > before.offset):
                newest[send.key] = send
        return newest

    def check_pass(
        self,
        records: Iterable[Found],
        end: Offset,
        newest: dict[bytes, KeyedSend],
        *,
        is_final: bool,
    ) -> None:
        """All records below `end`, and `newest` from before the read. Violation if one is wrong.

        `is_final`: no record lies at or beyond `end`.
        """
        self.passes += 1
        last: dict[bytes, Found] = {}
        at = -1
        for found in records:
            if found.offset <= at:
                raise Violation(f"a compacted log gave offset {found.offset} after {at}")
            at = found.offset
            self._check_record(found)
            last[found.key] = found
        for key, send in newest.items():
            if UNKNOWN_OFFSET < send.offset < end:
                self._check_key(key, send, last.get(key), None if is_final else end)

    def _check_record(self, found: Found) -> None:
        send = self.sent.get(found.id)
        if send is None or (send.key, send.value) != (found.key, found.value):
            raise Violation(f"a compacted log holds {found}, and {send} was sent")
        if self.seen.setdefault(found.offset, found.id) != found.id:
            raise Violation(f"a compacted log had {self.seen[found.offset]!r}, and now {found}")
        if send.is_acknowledged and send.offset not in (found.offset, UNKNOWN_OFFSET):
            raise Violation(f"{found} was acknowledged at {send.offset}")

    def _check_key(
        self, key: bytes, newest: KeyedSend, last: Found | None, end: Offset | None
    ) -> None:
        others = [send for send in self.sent.values() if send.key == key]
        if last is not None and last.offset >= newest.offset:
            return
        if end is not None and any(
            not send.is_acknowledged or send.offset >= end for send in others
        ):
            return  # A record that the reader did not come to may have replaced the newest one.
        if last is not None:
            raise Violation(f"the newest record of {key!r}, {newest}, is gone: {last} is left")
        # Tombstones go after a while; one that was not acknowledged may have been written.
        if newest.value is not None and not any(
            send.value is None and (not send.is_acknowledged or send.offset > newest.offset)
            for send in others
        ):
            raise Violation(f"the newest record of {key!r}, {newest}, is gone")

    def check_order(self) -> None:
        """Acknowledged records of a producer lie in the order of their sending."""
        last: dict[str, Offset] = {}
        for id_, send in self.sent.items():
            if not send.is_acknowledged or send.offset == UNKNOWN_OFFSET:
                continue
            if send.offset <= last.get(send.producer, -1):
                raise Violation(f"{id_!r} lies at {send.offset}, before what was sent before it")
            last[send.producer] = send.offset
