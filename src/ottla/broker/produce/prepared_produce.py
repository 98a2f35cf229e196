"""The specialisation of Produce for small requests of one partition: no message objects.

Successive requests of a client begin with the same bytes (transactional id, acks, timeout, topic,
partition), so what they mean is remembered by those bytes: who leads, how the answer looks. What
remains per request is the batch, and plain ones are appended as a run (`produce_run.py`). All
others are for the general path, `handlers/produce.py`, with which tests compare this one.
Prefixes are remembered for each principal alone: what one may write, another may not.

All that is remembered together takes at most `PREPARED_BYTES_MAX` bytes, whatever clients send.
Nothing is caught here: the connection's guard decides.
"""

from struct import Struct
from typing import Final

from ottla.broker.produce.context import ProduceContext
from ottla.broker.produce.produce_run import (
    FLEXIBLE_SINCE,
    RUN_REQUESTS_MAX,
    Prepared,
    Run,
    place_run,
)
from ottla.broker.wire.connection import Connection, Place, Serve
from ottla.metadata.image.cluster import INTERNAL_TOPICS
from ottla.model.errors import Refusal
from ottla.model.principal import ANONYMOUS, Principal
from ottla.model.types import WallTime

PREPARED_BYTES_MAX: Final = 32 << 20
PREPARED_BYTES: Final = 3 << 10  # One of them, without the bytes that a client has chosen.
# A longer beginning, by its client id, is left to the general path. A beginning is kept as a key
# and in the answer, and once more in each shape.
PREFIX_BYTES_MAX: Final = 1 << 10
TOPIC_IDS_SINCE: Final = 13

_INT32 = Struct(">i")
_HEAD = Struct(">Ii")  # Api key and version in one, correlation id.
_HEAD_BYTES: Final = _HEAD.size
_ACKS_TIMEOUT_COUNT = Struct(">hii")
_COUNT_INDEX = Struct(">ii")
_ACKS_TIMEOUT = Struct(">hi")


class PreparedProduces:
    def __init__(self, context: ProduceContext) -> None:
        self._context = context
        self._metrics = context.metrics
        self._by_principal: dict[Principal, dict[bytes, Prepared]] = {}
        # Of the last request's principal; the next one is most likely the same.
        self._principal, self._by_prefix = ANONYMOUS, self._remembered(ANONYMOUS)
        self._bytes = 0  # Of all that is remembered.
        self._length = 0  # Of the last request's beginning; the next one is most likely alike.
        self._now = WallTime(0)  # Of this turn, or 0: the clock is looked at once in a turn.

    def forget_time(self) -> None:
        """The loop turn ends."""
        self._now = WallTime(0)

    def forget(self) -> None:
        """Partitions came, went or changed their leader."""
        self._by_principal.clear()
        self._by_prefix = self._remembered(self._principal)
        self._bytes = 0

    def before(self, otherwise: Serve) -> Serve:
        """Serve whatever begins like a request before it; the rest is for `otherwise`."""
        run, faults = self._run, self._context.faults

        def serve(
            connection: Connection, frame: memoryview, position: int, end: int, limit: int
        ) -> int:
            start = position + self._length
            prefix_at = position + _HEAD_BYTES
            if prefix_at < start < end and not faults.waiting:
                if connection.principal is not self._principal:
                    self._select(connection.principal)
                prepared = self._by_prefix.get(bytes(frame[prefix_at:start]))
                if prepared is not None:
                    stopped = run(prepared, connection, frame, position - 4, limit)
                    if stopped > position:
                        return stopped
            return otherwise(connection, frame, position, end, limit)

        return serve

    def serve(
        self, connection: Connection, frame: memoryview, start: int, position: int, end: int
    ) -> bool:
        """Learn how a request begins, if it is of the kind served here, and serve it."""
        if type(frame.obj) is not bytearray:
            return False  # A large frame, with its own buffer: runs are of small ones.
        self._select(connection.principal)
        version = _HEAD.unpack_from(frame, start)[0]
        learned = self._learn(frame, start, position, end, version)
        if learned is None:
            return False
        prepared, self._length = learned
        return self._run(prepared, connection, frame, start - 4, end) == end

    def _select(self, principal: Principal) -> None:
        self._principal, self._by_prefix = principal, self._remembered(principal)

    def _remembered(self, principal: Principal) -> dict[bytes, Prepared]:
        return self._by_principal.setdefault(principal, {})

    def _run(
        self,
        prepared: Prepared,
        connection: Connection,
        frame: memoryview,
        position: int,
        limit: int,
    ) -> int:
        """Append all plain requests that follow each other here; returns where they end."""
        if self._context.directories.is_any_full:
            return position
        if limit - position > connection.frame_bytes_max + 4:
            return position  # One of them may be longer than is allowed: each is looked at alone.
        is_slow = prepared.acks_all and prepared.partition.is_slow
        if is_slow and prepared.partition.is_under_min_isr:
            return position
        now, run, total_bytes = self._now or self._look_at_clock(), None, 0
        following: Prepared | None = prepared
        while following is not None:
            placed, answers, position, size = place_run(following, frame, position, limit, now)
            if not placed:
                break
            total_bytes += size
            run = run or Run(Place(connection), prepared.acks, self._context)
            run.add(following, answers)
            following.partition.append_run(placed, size, run)
            if is_slow:
                run.start_timer(prepared.timeout_ms, self._context)
                break
            following = self._following(run, frame, position, limit)
        if run is not None:
            self._metrics.requests[0] += len(run.answers)
            self._metrics.bytes_in += total_bytes
            self._expect(run)
        return position

    def _following(self, run: Run, frame: memoryview, position: int, limit: int) -> Prepared | None:
        """What the next request asks for, most likely of another partition, if it may join."""
        end = position + 4 + self._length
        if end >= limit or len(run.answers) >= RUN_REQUESTS_MAX:
            return None
        found = self._by_prefix.get(bytes(frame[position + 4 + _HEAD_BYTES : end]))
        if found is None or found.acks != run.acks or (found.acks_all and found.partition.is_slow):
            return None
        return found

    def _expect(self, run: Run) -> None:
        place = run.place
        place.connection.replies.append(place)

    def _look_at_clock(self) -> WallTime:
        self._now = self._context.env.clock.wall()
        return self._now

    def _learn(
        self, frame: memoryview, start: int, position: int, end: int, version: int
    ) -> tuple[Prepared, int] | None:
        """What begins like this request, and the beginning's length; None if it is not for runs."""
        if not 3 <= version <= TOPIC_IDS_SINCE:
            return None
        read = _read_flexible if version >= FLEXIBLE_SINCE else _read_classic
        beginning = read(frame, position, end, version)
        if beginning is None:
            return None
        acks, timeout_ms, topic, index, records_start = beginning
        length = records_start - start
        if length > PREFIX_BYTES_MAX:
            return None
        key = bytes(frame[start + _HEAD_BYTES : records_start])
        known = self._by_prefix.get(key)
        if known is not None and known.version == version:
            # Of the last length: it was known before, and the run did not take the request.
            return None if length == self._length else (known, length)
        if acks not in (-1, 0, 1):
            return None
        name, topic_id = "", topic
        if version < TOPIC_IDS_SINCE:
            name_start = 1 if version >= FLEXIBLE_SINCE else 2
            name, topic_id = topic[name_start:].decode(errors="replace"), bytes(16)
        try:
            partition = self._context.partitions.led(name, topic_id, index)
        except Refusal:
            return None
        if partition.name.topic in INTERNAL_TOPICS or not partition.policy.is_plain:
            return None  # The general path says who may write, and looks at records.
        self._spend(PREPARED_BYTES + 4 * len(key))
        prepared = Prepared(key, partition, acks, timeout_ms, version, topic, index, self._spend)
        self._by_prefix[key] = prepared
        return prepared, length

    def _spend(self, count: int) -> None:
        """So many bytes more are to be remembered; if they are too many, begin from nothing."""
        if self._bytes + count > PREPARED_BYTES_MAX:
            self.forget()
        self._bytes += count


Beginning = tuple[int, int, bytes, int, int]


def _read_classic(frame: memoryview, position: int, end: int, _: int) -> Beginning | None:
    if end - position < 30 or frame[position] != 0xFF:
        return None  # A transactional id.
    acks, timeout_ms, topics = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position + 2)
    name_start = position + 12
    name_end = name_start + 2 + int.from_bytes(frame[name_start : name_start + 2], "big")
    if topics != 1 or name_end + 12 > end:
        return None
    partitions, index = _COUNT_INDEX.unpack_from(frame, name_end)
    if partitions != 1:
        return None
    return acks, timeout_ms, bytes(frame[name_start:name_end]), index, name_end + 8


def _read_flexible(frame: memoryview, position: int, end: int, version: int) -> Beginning | None:
    if end - position < 24 or frame[position] != 0 or frame[position + 7] != 2:
        return None  # A transactional id, or not one topic.
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position + 1)
    name_start = position + 8
    if version >= TOPIC_IDS_SINCE:
        name_end = name_start + 16
    else:
        length = frame[name_start]
        if length >= 0x80 or length == 0:
            return None  # A name of 127 bytes or more.
        name_end = name_start + length
    if name_end + 6 > end or frame[name_end] != 2:
        return None
    (index,) = _INT32.unpack_from(frame, name_end + 1)
    return acks, timeout_ms, bytes(frame[name_start:name_end]), index, name_end + 5
