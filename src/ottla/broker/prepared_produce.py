"""The fast way through Produce: one topic, one partition, no message objects.

Successive requests of a client begin with the same bytes (transactional id, acks, timeout, topic,
partition), so what they mean is remembered by those bytes: who leads, how the answer looks. What
remains per request is the batch. `handlers/produce.py` is the reference that tests compare with.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.broker.connection import Connection, Reply, Serve
from ottla.broker.partition import Partition
from ottla.metadata.cluster import INTERNAL_TOPICS
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.protocol.varint import Buffer, finish_uvarint
from ottla.records.admission import admit

if TYPE_CHECKING:
    from ottla.broker.server import Broker

PREPARED_MAX: Final = 10_000
FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13
LOG_START_SINCE: Final = 5
MESSAGES_SINCE: Final = 8
ACKS_NONE: Final = 0
ACKS_ALL: Final = -1

_INT32 = Struct(">i")
_HEAD = Struct(">Ii")  # Api key and version in one, correlation id.
_ACKS_TIMEOUT_COUNT = Struct(">hii")
_COUNT_INDEX = Struct(">ii")
_ACKS_TIMEOUT = Struct(">hi")
_NO_THROTTLE: Final = bytes(4)


class Prepared:
    """What all requests that begin with the same bytes have in common."""

    __slots__ = (
        "acks",
        "answer",
        "answer_end",
        "answer_start",
        "is_flexible",
        "partition",
        "size",
        "timeout_ms",
        "version",
    )

    def __init__(
        self,
        partition: Partition,
        acks: int,
        timeout_ms: int,
        version: int,
        topic: bytes,
        index: int,
    ) -> None:
        self.partition = partition
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.version = version
        is_flexible = self.is_flexible = version >= FLEXIBLE_SINCE
        one = b"\x02" if is_flexible else _INT32.pack(1)
        header_tags = b"\x00" if is_flexible else b""
        self.answer_start = header_tags + one + topic + one + _INT32.pack(index)
        if is_flexible:
            # No record errors, no message, no tags of partition and topic; throttle; no tags.
            self.answer_end = b"\x01\x00\x00\x00" + _NO_THROTTLE + b"\x00"
        elif version >= MESSAGES_SINCE:
            self.answer_end = _INT32.pack(0) + b"\xff\xff" + _NO_THROTTLE
        else:
            self.answer_end = _NO_THROTTLE
        # The whole answer in one call: size, correlation id, the start, error code, base offset,
        # append time, and from version 5 on the log's start; the end.
        start = f">ii{len(self.answer_start)}shqq"
        if version >= LOG_START_SINCE:
            self.answer = Struct(f"{start}q{len(self.answer_end)}s").pack
        else:
            without = Struct(f"{start}{len(self.answer_end)}s").pack
            self.answer = lambda *values: without(*values[:-2], values[-1])
        self.size = len(self.answer(0, 0, b"", 0, 0, 0, 0, b"")) - 4


class PreparedAppend(Reply):
    """One such request between its staging and its answer."""

    __slots__ = ("append_time", "base_offset", "prepared")

    def __init__(self, prepared: Prepared, connection: Connection, correlation_id: int) -> None:
        self.connection = connection
        self.correlation_id = correlation_id
        self.pieces = None
        self.prepared = prepared

    def appended(self, partition: Partition) -> None:
        if self.pieces is None:  # Else it was timed out before.
            self._answer(0, partition.log.log_start_offset)

    def failed(self, code: ErrorCode, _message: str | None = None) -> None:
        if self.pieces is not None:
            return
        if self.prepared.acks == ACKS_NONE:
            self.connection.close()  # Nobody reads an answer.
            return
        self.base_offset = self.append_time = -1
        self._answer(code, -1)

    def _answer(self, code: int, log_start_offset: int) -> None:
        prepared = self.prepared
        if prepared.acks == ACKS_NONE:
            self.pieces = ()
        else:
            self.pieces = (
                prepared.answer(
                    prepared.size,
                    self.correlation_id,
                    prepared.answer_start,
                    code,
                    self.base_offset,
                    self.append_time,
                    log_start_offset,
                    prepared.answer_end,
                ),
            )
        self.connection.replied(self)


class TimedAppend(PreparedAppend):
    """One that may have to wait for more than this turn, and does so for its timeout at most."""

    __slots__ = ("_timer",)

    def wait(self, broker: "Broker") -> None:
        self._timer = broker.call_later(self.prepared.timeout_ms, self._timed_out)

    def appended(self, partition: Partition) -> None:
        self._timer.cancel()
        super().appended(partition)

    def failed(self, code: ErrorCode, _message: str | None = None) -> None:
        self._timer.cancel()
        super().failed(code)

    def _timed_out(self) -> None:
        self.failed(ErrorCode.REQUEST_TIMED_OUT)


class PreparedProduces:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._metrics = broker.metrics
        self._shared = broker.memory.shared.obj
        self._by_prefix: dict[bytes, Prepared] = {}
        self._length = 0  # Of the last request's beginning; the next one is most likely alike.
        self._now = WallTime(0)  # Of this turn, or 0: the clock is looked at once in a turn.

    def turn_ended(self) -> None:
        self._now = WallTime(0)

    def forget(self) -> None:
        """Partitions came, went or changed their leader."""
        self._by_prefix.clear()

    def before(self, otherwise: Serve) -> Serve:
        """Serve whatever begins like a request before it; the rest is for `otherwise`."""
        by_prefix, append = self._by_prefix, self._append
        faults, requests = self._broker.faults, self._broker.metrics.requests

        def serve(connection: Connection, frame: memoryview, position: int, end: int) -> None:
            start = position + self._length
            if position + _HEAD.size < start < end and not faults.waiting:
                head, correlation_id = _HEAD.unpack_from(frame, position)
                prepared = by_prefix.get(bytes(frame[position + 8 : start]))
                if (
                    prepared is not None
                    and prepared.version == head  # Produce is API 0.
                    and append(prepared, connection, frame, start, end, correlation_id)
                ):
                    requests[0] += 1
                    return
            otherwise(connection, frame, position, end)

        return serve

    def serve(
        self, connection: Connection, frame: memoryview, start: int, position: int, end: int
    ) -> bool:
        """Learn how a request begins, if it is of the kind served here, and serve it."""
        version, correlation_id = _HEAD.unpack_from(frame, start)
        prepared_end = self._prepare(frame, start, position, end, version)
        if prepared_end is None:
            return False
        prepared, records_start = prepared_end
        self._length = records_start - start
        return self._append(prepared, connection, frame, records_start, end, correlation_id)

    def _append(
        self,
        prepared: Prepared,
        connection: Connection,
        frame: memoryview,
        start: int,
        end: int,
        correlation_id: int,
    ) -> bool:
        if prepared.is_flexible:
            size = frame[start]
            start += 1
            if size > 127:
                size, start = finish_uvarint(frame, start, size)
            size -= 1
            # Then the tags of partition, topic and request: none of them.
            if start + size + 3 != end or frame[end - 1] or frame[end - 2] or frame[end - 3]:
                return False
        else:
            size = _INT32.unpack_from(frame, start)[0]
            start += 4
            if start + size != end:
                return False
        partition = prepared.partition
        view = frame[start : start + size]
        records: Buffer = view
        # The shared buffer is used again for the next read; a large frame's own is not. A time
        # stamped into it would be taken for the client's, if the reference came to look at it.
        if frame.obj is self._shared or partition.policy.is_append_time:
            records = bytearray(view)
        broker = self._broker
        is_timed = partition.is_synced_before_reply and prepared.acks == ACKS_ALL
        appending = (TimedAppend if is_timed else PreparedAppend)(
            prepared, connection, correlation_id
        )
        try:
            if broker.directories.is_any_full:
                broker.partitions.check_writable(partition)
            now = self._now or self._look_at_clock()
            batch = admit(records, partition.policy, now, prepared.version, view)
            appending.base_offset, appending.append_time = partition.append(batch, appending)
        except Refusal:
            return False  # The reference meets the same refusal and knows all of its words.
        self._metrics.bytes_in += size
        connection.replies.append(appending)
        if type(appending) is TimedAppend:
            appending.wait(broker)
        return True

    def _look_at_clock(self) -> WallTime:
        self._now = self._broker.env.clock.wall()
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
            partition = self._broker.partitions.led(name, topic_id, index)
        except Refusal:
            return None
        if partition.name.topic in INTERNAL_TOPICS:
            return None  # The reference says who may.
        prepared = Prepared(partition, acks, timeout_ms, version, topic, index)
        if len(self._by_prefix) >= PREPARED_MAX:
            self._by_prefix.clear()
        self._by_prefix[key] = prepared
        return prepared, records_start


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
