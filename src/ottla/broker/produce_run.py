"""Produce requests of one partition that follow each other on a connection, served as one run.

A client with several requests in flight sends them all alike but for the batch. What is alike is
compared once as bytes; what remains is one loop that reads a header, checks what `admit` checks,
gives the batch its offset and makes its answer. The run is appended, written and answered as one.
Whatever is not plain (a producer id, a rule of the topic, anything wrong) ends the run: the loop
decides nothing but that a batch is good.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.broker.connection import Connection, Reply
from ottla.broker.partition import Partition
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
    NO_PRODUCER_ID,
    PlacedBatch,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec

if TYPE_CHECKING:
    from ottla.broker.server import Broker

RUN_REQUESTS_MAX: Final = 64
FLEXIBLE_SINCE: Final = 9
LOG_START_SINCE: Final = 5
MESSAGES_SINCE: Final = 8
ACKS_NONE: Final = 0
ACKS_ALL: Final = -1

_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CORRELATION_AT: Final = 4
# The frame's size, api key and version in one, correlation id.
_FRAME: Final = ">iIi"
_PREFIX_AT: Final = 12
# Of a batch's header: base offset, length, magic, CRC, attributes, last offset delta, max
# timestamp, producer id, count.
_CHECKED: Final = "qi4xbIhi8xqq6xi"
_NO_TAGS: Final = bytes(3)  # Of partition, topic and request.
_NO_THROTTLE: Final = bytes(4)
_NO_APPEND_TIME: Final = b"\xff" * 8


class Prepared:
    """What all requests that begin with the same bytes have in common."""

    __slots__ = (
        "_answer_end",
        "_answer_start",
        "_has_log_start",
        "_layouts",
        "acks",
        "answer",
        "answer_size",
        "answer_start",
        "codec_max",
        "is_flexible",
        "is_slow",
        "partition",
        "prefix",
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
    ) -> None:
        self.prefix = prefix  # From behind the correlation id to the size of the records.
        self.partition = partition
        self.acks = acks
        self.is_slow = acks == ACKS_ALL and partition.is_slow
        self.timeout_ms = timeout_ms
        self.version = version
        self.codec_max = Codec.ZSTD if version >= ZSTD_SINCE_VERSION else Codec.ZSTD - 1
        is_flexible = self.is_flexible = version >= FLEXIBLE_SINCE
        one = b"\x02" if is_flexible else _INT32.pack(1)
        header_tags = b"\x00" if is_flexible else b""
        self.tags = _NO_TAGS if is_flexible else b""
        self._layouts: dict[int, Struct] = {}
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
        end_bytes = len(self.end_of_answer(_NO_APPEND_TIME, 0))
        # The whole answer in one call: size, correlation id, start, base offset, end.
        layout = Struct(f">ii{len(self.answer_start)}sq{end_bytes}s")
        self.answer = layout.pack
        self.answer_size = layout.size - 4

    def layout_at(self, buffer: bytearray, position: int, limit: int) -> Struct:
        """How requests lie whose records' size takes as many bytes as it does here."""
        count = 4
        if self.is_flexible:
            count, place = 1, position + _PREFIX_AT + len(self.prefix)
            while count < UVARINT_BYTES_MAX and place < limit and buffer[place] > 127:
                count += 1
                place += 1
        layout = self._layouts.get(count)
        if layout is None:
            layout = Struct(f"{_FRAME}{len(self.prefix) + count}s{_CHECKED}")
            self._layouts[count] = layout
        return layout

    def beginning(self, size: int) -> bytes:
        """From behind the correlation id to the records, if they are of this size."""
        if not self.is_flexible:
            return self.prefix + (size & 0xFFFF_FFFF).to_bytes(4, "big")
        encoded = bytearray(self.prefix)
        append_uvarint(encoded, max(size, 0) + 1)
        return bytes(encoded)

    def start_of_answer(self, code: ErrorCode) -> bytes:
        """What comes before the base offset."""
        return self._answer_start + code.to_bytes(2, "big", signed=True)

    def end_of_answer(self, append_time: bytes, log_start_offset: Offset) -> bytes:
        """What comes behind it; no version before 5 tells the log's start."""
        if self._has_log_start:
            return append_time + _INT64.pack(log_start_offset) + self._answer_end
        return append_time + self._answer_end

    def one_answer(self, correlation_id: int, base_offset: Offset, append_time: int) -> bytes:
        end = self.end_of_answer(_INT64.pack(append_time), self.partition.log.log_start_offset)
        return self.answer(self.answer_size, correlation_id, self.answer_start, base_offset, end)

    def failed_answer(self, answer: bytes, code: ErrorCode) -> bytes:
        """The same answer, had the request failed."""
        correlation_id = _INT32.unpack_from(answer, _CORRELATION_AT)[0]
        start, end = self.start_of_answer(code), self.end_of_answer(_NO_APPEND_TIME, -1)
        return self.answer(self.answer_size, correlation_id, start, -1, end)


class Run(Reply):
    """The answers to a run between its staging and its flush; they leave as one."""

    __slots__ = ("answers", "prepared")

    def __init__(self, prepared: Prepared, connection: Connection, answers: list[bytes]) -> None:
        self.connection = connection
        self.pieces = None
        self.prepared = prepared
        self.answers = answers

    @property
    def acks_all(self) -> bool:
        return self.prepared.acks == ACKS_ALL

    def appended(self, _partition: Partition) -> None:
        if self.pieces is None:  # Else it was timed out before.
            self._answer(self.answers)

    def failed(self, code: ErrorCode, _message: str | None = None) -> None:
        if self.pieces is not None:
            return
        prepared = self.prepared
        if prepared.acks == ACKS_NONE:
            self.connection.close()  # Nobody reads an answer.
            return
        self._answer([prepared.failed_answer(answer, code) for answer in self.answers])

    def _answer(self, answers: list[bytes]) -> None:
        if self.prepared.acks == ACKS_NONE:
            self.pieces = ()
        else:
            self.pieces = (answers[0] if len(answers) == 1 else b"".join(answers),)
        self.connection.replied(self)


class TimedRun(Run):
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


def place_run(
    prepared: Prepared, frame: memoryview, position: int, limit: int, now: WallTime
) -> tuple[list[PlacedBatch], list[bytes], int]:
    """Read the plain requests from `position` on: their batches with their offsets, their answers.

    `position` is where the first one's size lies; the third value is where the run ends.
    """
    partition = prepared.partition
    policy, log, buffer = partition.policy, partition.log, frame.obj
    if (
        not policy.is_plain
        or log.epochs.latest != partition.leader_epoch  # The first batch begins it in the log.
        or type(buffer) is not bytearray
    ):
        return [], [], position
    bytes_max = min(policy.message_bytes_max, log.config.segment_bytes)
    timestamp_max = now + policy.timestamp_after_ms_max
    return _place(prepared, frame, buffer, position, limit, bytes_max, timestamp_max)


def _place(
    prepared: Prepared,
    frame: memoryview,
    buffer: bytearray,  # What the frame is a view of: comparing it makes no new objects.
    position: int,
    limit: int,
    bytes_max: int,
    timestamp_max: int,
) -> tuple[list[PlacedBatch], list[bytes], int]:
    placed: list[PlacedBatch] = []
    answers: list[bytes] = []
    version, codec_max = prepared.version, prepared.codec_max
    leader_epoch, log = prepared.partition.leader_epoch, prepared.partition.log
    answer, answer_size, answer_start = prepared.answer, prepared.answer_size, prepared.answer_start
    answer_end = prepared.end_of_answer(_NO_APPEND_TIME, log.log_start_offset)
    layout = prepared.layout_at(buffer, position, limit)
    read, batch_at = layout.unpack_from, layout.size - HEADER_BYTES
    tags, tags_bytes = prepared.tags, len(prepared.tags)
    beginning, known_length, offset = b"", -1, log.staged_end
    start_max = limit - layout.size  # Where a whole request can still begin.
    while position <= start_max and len(answers) < RUN_REQUESTS_MAX:
        (frame_size, head, correlation_id, begins, base, length, magic, crc,
         attributes, delta, max_timestamp, producer_id, count) = read(buffer, position)  # fmt: skip
        if length != known_length:
            beginning, known_length = prepared.beginning(length + LOG_OVERHEAD_BYTES), length
        start = position + batch_at
        batch_end = start + length + LOG_OVERHEAD_BYTES
        end = position + 4 + frame_size
        if not (
            begins == beginning
            and head == version  # Produce is API 0, so that its version is all of the head.
            and batch_end + tags_bytes == end <= limit
            and HEADER_BYTES <= batch_end - start <= bytes_max
            and magic == MAGIC
            and base == 0
            and 0 < count == delta + 1
            and 0 <= attributes <= codec_max
            and producer_id == NO_PRODUCER_ID
            and max_timestamp <= timestamp_max
            and buffer.startswith(tags, batch_end)
            and crc == crc32c(frame[start + CRC_START : batch_end])
        ):
            break
        data = frame[start:batch_end]  # Which stays where it is until the turn's flush.
        ASSIGNED.pack_into(data, 0, offset, length, leader_epoch)
        size, last_offset = batch_end - start, offset + delta
        placed.append((data, size, offset, last_offset, max_timestamp, leader_epoch, -1))
        answers.append(answer(answer_size, correlation_id, answer_start, offset, answer_end))
        offset, position = last_offset + 1, end
    return placed, answers, position
