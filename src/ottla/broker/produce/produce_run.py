"""Produce requests that follow each other on a connection, served as one run.

A client with several requests in flight sends those for a partition all alike but for the batch.
What is alike is compared once as bytes; what remains is one loop that reads a header, checks what
`admit` checks, gives the batch its offset and makes its answer. What was placed for one partition
is appended and written as one, and the whole run, for however many partitions, answered as one.
Whatever is not plain (the first batch of a producer, a rule of the topic, anything wrong) ends the
run: the loop decides nothing but that a batch is good, and the next one of its producer.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from ottla.broker.partitions.partition import Partition
from ottla.broker.produce.context import ProduceContext
from ottla.broker.produce.waiting import ACKS_ALL, Waiting
from ottla.broker.wire.connection import Place
from ottla.broker.wire.leader_hints import HINTED, PRODUCE_SINCE, with_leaders
from ottla.model.errors import ErrorCode
from ottla.model.types import Offset, WallTime
from ottla.protocol.varint import UVARINT_BYTES_MAX, append_uvarint
from ottla.records.admission import ZSTD_SINCE_VERSION
from ottla.records.batch import (
    ASSIGNED,
    CRC_START,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    OFFSET_AND_LENGTH,
    PlacedBatch,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.record import RECORD_BYTES_MIN

RUN_REQUESTS_MAX: Final = 64
SHAPES_MAX: Final = 64
SHAPE_BYTES: Final = 512  # One of them, without its beginning.
FLEXIBLE_SINCE: Final = 9
LOG_START_SINCE: Final = 5
MESSAGES_SINCE: Final = 8

_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CORRELATION_AT: Final = 4
# The frame's size, api key and version in one, correlation id.
_FRAME: Final = ">Qi"
_PREFIX_AT: Final = 12
# Of a batch's header, behind its length: magic, CRC, attributes, last offset delta, max timestamp,
# producer id, its epoch, base sequence, count.
_CHECKED: Final = "4xbIhi8xqqhii"
_NO_TAGS: Final = bytes(3)  # Of partition, topic and request.
_NO_THROTTLE: Final = bytes(4)
_NO_APPEND_TIME: Final = b"\xff" * 8

# Of requests of one size: that size, how it and the version begin a frame, how to read one, the
# bytes of that up to the batch's header's end, the bytes from behind the correlation id to the
# length of the batch, and the batch's size.
Shape = tuple[int, int, Callable[[bytearray, int], tuple[Any, ...]], int, bytes, int]
# The batches of a run, their answers, where the run ends, and how many bytes the batches are.
Placed = tuple[list[PlacedBatch], list[bytes], int, int]


class Prepared:
    """What all requests that begin with the same bytes have in common."""

    __slots__ = (
        "_answer_end",
        "_answer_start",
        "_has_log_start",
        "_layouts",
        "_plain_end",
        "_plain_end_for",
        "_shapes",
        "_spend",
        "acks",
        "acks_all",
        "answer",
        "answer_size",
        "answer_start",
        "codec_max",
        "is_flexible",
        "partition",
        "prefix",
        "shape",
        "tags",
        "timeout_ms",
        "version",
    )

    def __init__(
        self,
        prefix: bytes,
        partition: Partition,
        acks: int,
        timeout_ms: int,
        version: int,
        topic: bytes,
        index: int,
        spend: Callable[[int], None],
    ) -> None:
        """`spend` is told of the bytes that are kept from later requests."""
        self._spend = spend
        self.prefix = prefix  # From behind the correlation id to the size of the records.
        self.partition = partition
        self.acks = acks
        self.acks_all = acks == ACKS_ALL
        self.timeout_ms = timeout_ms
        self.version = version
        self.codec_max = Codec.ZSTD if version >= ZSTD_SINCE_VERSION else Codec.ZSTD - 1
        is_flexible = self.is_flexible = version >= FLEXIBLE_SINCE
        one = b"\x02" if is_flexible else _INT32.pack(1)
        header_tags = b"\x00" if is_flexible else b""
        self.tags = _NO_TAGS if is_flexible else b""
        self._layouts: dict[int, Struct] = {}  # By the bytes that the records' size takes.
        self._shapes: dict[int, Shape] = {}  # By the size of the frame.
        self.shape: Shape | None = None  # Of the last request: the next one is most likely alike.
        self._answer_start = header_tags + one + topic + one + _INT32.pack(index)
        if is_flexible:
            # No record errors, no message, no tags of partition and topic; throttle; no tags.
            self._answer_end = b"\x01\x00\x00\x00" + _NO_THROTTLE + b"\x00"
        elif version >= MESSAGES_SINCE:
            self._answer_end = _INT32.pack(0) + b"\xff\xff" + _NO_THROTTLE
        else:
            self._answer_end = _NO_THROTTLE
        self._has_log_start = version >= LOG_START_SINCE
        self.answer_start = self.start_of_answer(ErrorCode.NONE)
        self._plain_end_for: Offset = 0
        self._plain_end = self.end_of_answer(_NO_APPEND_TIME, 0)
        end_bytes = len(self._plain_end)
        # The whole answer in one call: size, correlation id, start, base offset, end.
        layout = Struct(f">ii{len(self.answer_start)}sq{end_bytes}s")
        self.answer = layout.pack
        self.answer_size = layout.size - 4

    def shape_of(self, frame_size: int) -> "Shape | None":
        """How a request of this size lies; None if none of this kind has this size."""
        shape = self._shapes.get(frame_size)
        if shape is None:
            left = frame_size + 4 - _PREFIX_AT - len(self.prefix) - len(self.tags)
            count = self._size_bytes(left)
            size = left - count
            if size < HEADER_BYTES:
                return None
            encoded = bytearray(self.prefix)
            if self.is_flexible:
                append_uvarint(encoded, size + 1)
            else:
                encoded += _INT32.pack(size)
            # No batch that was not placed yet has an offset.
            beginning = bytes(encoded + OFFSET_AND_LENGTH.pack(0, size - LOG_OVERHEAD_BYTES))
            layout = self._layouts.get(count)
            if layout is None:
                layout = Struct(f"{_FRAME}{len(beginning)}x{_CHECKED}")
                self._layouts[count] = layout
            if len(self._shapes) >= SHAPES_MAX:
                self._shapes.clear()
            self._spend(SHAPE_BYTES + len(beginning))
            head = frame_size << 32 | self.version  # Produce is API 0.
            shape = (frame_size, head, layout.unpack_from, layout.size, beginning, size)
            self._shapes[frame_size] = shape
        self.shape = shape
        return shape

    def _size_bytes(self, left: int) -> int:
        """How many of the `left` bytes say how many bytes of records the others are."""
        if not self.is_flexible:
            return 4
        for count in range(1, UVARINT_BYTES_MAX):
            if (left - count + 1).bit_length() <= 7 * count:
                return count
        return UVARINT_BYTES_MAX

    def start_of_answer(self, code: ErrorCode) -> bytes:
        """What comes before the base offset."""
        return self._answer_start + code.to_bytes(2, "big", signed=True)

    def end_of_answer(self, append_time: bytes, log_start_offset: Offset) -> bytes:
        """What comes behind it; no version before 5 tells the log's start."""
        if self._has_log_start:
            return append_time + _INT64.pack(log_start_offset) + self._answer_end
        return append_time + self._answer_end

    def plain_end(self, log_start_offset: Offset) -> bytes:
        """The same where no time was stamped; remembered, since the log's start seldom moves."""
        if self._plain_end_for != log_start_offset:
            self._plain_end = self.end_of_answer(_NO_APPEND_TIME, log_start_offset)
            self._plain_end_for = log_start_offset
        return self._plain_end

    def failed_answer(self, answer: bytes, code: ErrorCode) -> bytes:
        """The same answer, had the request failed."""
        correlation_id = _INT32.unpack_from(answer, _CORRELATION_AT)[0]
        start, end = self.start_of_answer(code), self.end_of_answer(_NO_APPEND_TIME, -1)
        return self.answer(self.answer_size, correlation_id, start, -1, end)


class Run(Waiting):
    """The answers to requests that were staged together; they leave as one when all are written."""

    __slots__ = ("_context", "_is_failed", "answers", "parts")

    def __init__(self, place: Place, acks: int, context: ProduceContext) -> None:
        super().__init__(place, acks)
        self._context = context
        self._is_failed = False
        self.answers: list[bytes] = []
        self.parts: list[tuple[Prepared, int]] = []  # Whose so many of the answers are, in order.

    def add(self, prepared: Prepared, answers: list[bytes]) -> None:
        """Requests of one partition, which will tell their end."""
        self.answers += answers
        self.parts.append((prepared, len(answers)))
        self._open += 1

    def _fail(self, partition: Partition, code: ErrorCode) -> None:
        """All requests of the partition: they were staged, and are lost, together."""
        self._is_failed = True
        place = 0
        for prepared, count in self.parts:
            if prepared.partition is partition:
                for i in range(place, place + count):
                    self.answers[i] = self._failed_answer(prepared, self.answers[i], code)
            place += count

    def _fail_open(self, code: ErrorCode) -> None:
        """A run that may have to wait for more than its loop turn is of one partition."""
        self._fail(self.parts[0][0].partition, code)

    def _has_failed(self) -> bool:
        return self._is_failed

    def _send(self) -> None:
        place = self.place
        place.pieces = (b"".join(self.answers),)
        place.connection.replied(place)

    def _failed_answer(self, prepared: Prepared, answer: bytes, code: ErrorCode) -> bytes:
        failed, version = prepared.failed_answer(answer, code), prepared.version
        if code not in HINTED or version < PRODUCE_SINCE:
            return failed
        listener = self.place.connection.listener
        return with_leaders(failed, version, self._context.image, listener)


def place_run(
    prepared: Prepared, frame: memoryview, position: int, limit: int, now: WallTime
) -> Placed:
    """Read the plain requests from `position` on: their batches with their offsets, their answers.

    `position` is where the first one's size lies.
    """
    partition, buffer = prepared.partition, frame.obj
    if (
        partition.policy.is_plain
        # The first batch begins the epoch in the log.
        and partition.log.epochs.latest == partition.leader_epoch
        and type(buffer) is bytearray
        and limit - position >= _PREFIX_AT
    ):
        shape = prepared.shape or prepared.shape_of(_INT32.unpack_from(buffer, position)[0])
        if shape is not None:
            return _place(prepared, shape, frame, buffer, position, limit, now)
    return [], [], position, 0


def _place(
    prepared: Prepared,
    shape: Shape,
    frame: memoryview,
    buffer: bytearray,  # What the frame is a view of: comparing it makes no new objects.
    position: int,
    limit: int,
    now: WallTime,
) -> Placed:
    placed: list[PlacedBatch] = []
    answers: list[bytes] = []
    total_bytes = 0
    partition = prepared.partition
    policy, log, leader_epoch = partition.policy, partition.log, partition.leader_epoch
    answer, answer_size, answer_start = prepared.answer, prepared.answer_size, prepared.answer_start
    frame_size, head, read, header_bytes, beginning, size = shape
    answer_end, offset = prepared.plain_end(log.log_start_offset), log.staged_end
    while position + header_bytes <= limit and len(answers) < RUN_REQUESTS_MAX:
        if not buffer.startswith(beginning, position + _PREFIX_AT):
            other_size = _INT32.unpack_from(buffer, position)[0]
            other = None if other_size == frame_size else prepared.shape_of(other_size)
            if other is None:  # For another partition, or not plain.
                break
            frame_size, head, read, header_bytes, beginning, size = other
            continue
        (begins, correlation_id, magic, crc, attributes, delta, max_timestamp, producer_id,
         epoch, sequence, count) = read(buffer, position)  # fmt: skip
        start = position + header_bytes - HEADER_BYTES
        batch_end = start + size
        if not (
            begins == head
            and position + 4 + frame_size <= limit
            and magic == MAGIC
            and 0 < count == delta + 1
            and (
                count * RECORD_BYTES_MIN <= size - HEADER_BYTES
                or (attributes and count <= policy.packed_count_max)
            )
            and 0 <= attributes <= prepared.codec_max
            and max_timestamp - now <= policy.timestamp_after_ms_max
            and size <= policy.message_bytes_max
            and size <= log.config.segment_bytes
            and buffer.startswith(prepared.tags, batch_end)
            and crc == crc32c(frame[start + CRC_START : batch_end])
            and (  # Last: a producer's next batch is noted.
                producer_id < 0
                or log.producers.follows(producer_id, epoch, sequence, delta, offset, max_timestamp)
            )
        ):
            break
        data = frame[start:batch_end]  # Which stays where it is until the turn's flush.
        ASSIGNED.pack_into(data, 0, offset, size - LOG_OVERHEAD_BYTES, leader_epoch)
        last_offset = offset + delta
        placed.append((data, size, offset, last_offset, max_timestamp, leader_epoch, producer_id))
        answers.append(answer(answer_size, correlation_id, answer_start, offset, answer_end))
        total_bytes += size
        offset, position = last_offset + 1, position + 4 + frame_size
    return placed, answers, position, total_bytes
