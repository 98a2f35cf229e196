"""The fast way through Produce: one topic, one partition, no message objects.

Successive requests of a client begin with the same bytes (transactional id, acks, timeout, topic,
partition), so what they mean is remembered by those bytes: who leads, how the answer looks. What
remains per request is the batch. `handlers/produce.py` is the reference that tests compare with.
It is remembered for each principal alone: what one may write, another may not.

All that is remembered together takes at most `PREPARED_BYTES_MAX` bytes, whatever clients send.
Nothing is caught here but what a malformed size raises: the connection's guard has the rest.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final

from ottla.broker.produce.context import ProduceContext
from ottla.broker.produce.produce_run import (
    FLEXIBLE_SINCE,
    RUN_REQUESTS_MAX,
    Prepared,
    Run,
    TimedRun,
    place_run,
)
from ottla.broker.wire.connection import Connection, Serve
from ottla.metadata.image.cluster import INTERNAL_TOPICS
from ottla.model.errors import ProtocolError, Refusal
from ottla.model.principal import ANONYMOUS, Principal
from ottla.model.types import WallTime
from ottla.protocol.varint import Buffer, finish_uvarint
from ottla.records.admission import Admission, admit
from ottla.records.batch import Batch

PREPARED_BYTES_MAX: Final = 32 << 20
PREPARED_BYTES: Final = 3 << 10  # One of them, without the bytes that a client has chosen.
# A longer beginning, by its client id, is left to the reference. A beginning is kept as a key and
# in the answer, and once more in each shape.
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
        """The turn ends, or another batch is about to get a later time in it."""
        self._now = WallTime(0)

    def forget(self) -> None:
        """Partitions came, went or changed their leader."""
        self._by_principal.clear()
        self._by_prefix = self._remembered(self._principal)
        self._bytes = 0

    def before(self, otherwise: Serve) -> Serve:
        """Serve whatever begins like a request before it; the rest is for `otherwise`."""
        run, append = self._run, self._append
        faults, requests = self._context.faults, self._context.metrics.requests

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
                    if append(prepared, connection, frame, position, start, end):
                        requests[0] += 1
                        return end
            return otherwise(connection, frame, position, end, limit)

        return serve

    def serve(
        self, connection: Connection, frame: memoryview, start: int, position: int, end: int
    ) -> bool:
        """Learn how a request begins, if it is of the kind served here, and serve it."""
        self._select(connection.principal)
        version = _HEAD.unpack_from(frame, start)[0]
        prepared_end = self._prepare(frame, start, position, end, version)
        if prepared_end is None:
            return False
        prepared, records_start = prepared_end
        self._length = records_start - start
        return self._append(prepared, connection, frame, start, records_start, end)

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
        if prepared.is_slow and prepared.partition.is_under_min_isr:
            return position
        now, run, total_bytes = self._now or self._look_at_clock(), None, 0
        following: Prepared | None = prepared
        while following is not None:
            placed, answers, position, size = place_run(following, frame, position, limit, now)
            if not placed:
                break
            total_bytes += size
            run = run or _run_of(prepared, connection)
            run.add(following, answers)
            following.partition.append_run(placed, size, run)
            following = self._following(run, frame, position, limit)
        if run is not None:
            self._metrics.requests[0] += len(run.answers)
            self._metrics.bytes_in += total_bytes
            self._expect(run)
        return position

    def _following(self, run: Run, frame: memoryview, position: int, limit: int) -> Prepared | None:
        """What the next request asks for, most likely of another partition, if it may join."""
        end = position + 4 + self._length
        if end >= limit or len(run.answers) >= RUN_REQUESTS_MAX or type(run) is TimedRun:
            return None
        found = self._by_prefix.get(bytes(frame[position + 4 + _HEAD_BYTES : end]))
        return found if found is not None and found.acks == run.acks and not found.is_slow else None

    def _append(
        self,
        prepared: Prepared,
        connection: Connection,
        frame: memoryview,
        position: int,
        start: int,
        end: int,
    ) -> bool:
        """Append one request's batch, if it is one that may be; else nothing has happened."""
        head, correlation_id = _HEAD.unpack_from(frame, position)
        if head != prepared.version:  # Produce is API 0, so that its version is all of the head.
            return False
        try:
            start, records_end = _records_at(prepared, frame, start, end)
        except (ProtocolError, IndexError, struct_error):
            return False  # A size that is none; the reference says so.
        size = records_end - start
        if size < 0:
            return False
        partition = prepared.partition
        if prepared.is_slow and partition.is_under_min_isr:
            return False  # Acks=all is refused; the reference has the words.
        records: Buffer = frame[start : start + size]
        # The batch stays where it is until the turn's flush, unless a time is stamped into it: that
        # would be taken for the client's, if the reference came to look at it.
        if partition.policy.is_append_time:
            records = bytearray(records)
        try:
            batch = self._admit(prepared, records)
            if not isinstance(batch, Batch):
                return False  # It is for a worker; the reference waits for it.
            run = _run_of(prepared, connection)
            base_offset, append_time = partition.append(batch, run)
        except Refusal:
            return False  # The reference meets the same refusal and knows all of its words.
        run.add(prepared, [prepared.one_answer(correlation_id, base_offset, append_time)])
        self._metrics.bytes_in += size
        self._expect(run)
        return True

    def _admit(self, prepared: Prepared, records: Buffer) -> Batch | Admission:
        context, partition = self._context, prepared.partition
        if context.directories.is_any_full:
            context.partitions.check_writable(partition)
        now = self._now or self._look_at_clock()
        return admit(records, partition.policy, now, prepared.version, context.scans.budget)

    def _expect(self, run: Run) -> None:
        run.connection.replies.append(run)
        if type(run) is TimedRun:
            run.wait(self._context)

    def _look_at_clock(self) -> WallTime:
        self._now = self._context.env.clock.wall()
        return self._now

    def _prepare(
        self, frame: memoryview, start: int, position: int, end: int, version: int
    ) -> tuple[Prepared, int] | None:
        """Read a request's beginning; None if it is not of the kind served here."""
        if not 3 <= version <= TOPIC_IDS_SINCE:
            return None
        read = _read_flexible if version >= FLEXIBLE_SINCE else _read_classic
        beginning = read(frame, position, end, version)
        if beginning is None:
            return None
        acks, timeout_ms, topic, index, records_start = beginning
        if records_start - start > PREFIX_BYTES_MAX:
            return None
        key = bytes(frame[start + 8 : records_start])
        known = self._by_prefix.get(key)
        if known is not None and known.version == version:
            return known, records_start
        if acks not in (-1, 0, 1):
            return None
        name, topic_id = "", topic
        if version < TOPIC_IDS_SINCE:
            name_start = 1 if version >= FLEXIBLE_SINCE else 2
            name, topic_id = topic[name_start:].decode(), bytes(16)
        try:
            partition = self._context.partitions.led(name, topic_id, index)
        except Refusal:
            return None
        if partition.name.topic in INTERNAL_TOPICS:
            return None  # The reference says who may.
        self._spend(PREPARED_BYTES + 4 * len(key))
        prepared = Prepared(key, partition, acks, timeout_ms, version, topic, index, self._spend)
        self._by_prefix[key] = prepared
        return prepared, records_start

    def _spend(self, count: int) -> None:
        """So many bytes more are to be remembered; if they are too many, begin from nothing."""
        if self._bytes + count > PREPARED_BYTES_MAX:
            self.forget()
        self._bytes += count


def _run_of(prepared: Prepared, connection: Connection) -> Run:
    return (TimedRun if prepared.is_slow else Run)(connection, prepared.acks)


def _records_at(prepared: Prepared, frame: memoryview, start: int, end: int) -> tuple[int, int]:
    """Where the records begin and end; the end is -1 if the request has more than them."""
    if not prepared.is_flexible:
        size = _INT32.unpack_from(frame, start)[0]
        start += 4
        return start, end if start + size == end else -1
    size = frame[start]
    start += 1
    if size > 127:
        size, start = finish_uvarint(frame, start, size)
    size -= 1
    # Then the tags of partition, topic and request: none of them.
    if start + size + 3 != end or frame[end - 1] or frame[end - 2] or frame[end - 3]:
        return start, -1
    return start, end - 3


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
