"""Full validation of a produced batch, record by record, and its recompression.

Only for topics that need it (`admission` decides). As in Apache Kafka, a batch is refused as a
whole, with an error for each invalid record.
"""

from collections.abc import Generator, Iterator
from typing import Final, Protocol

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, WallTime
from ottla.records.batch import HEADER_BYTES, NO_TIMESTAMP, TRANSACTIONAL, Batch, Buffer, rewrite
from ottla.records.compression import Codec, compress
from ottla.records.record import BadRecords, Oversized, wrap_int64, write_varint
from ottla.records.record_spans import skim
from ottla.records.scan import PACKED_BYTES_PER_US, BatchScan

RecordErrors = list[tuple[int, str]]
# An error takes about 150 bytes of a response, the smallest batch 68 bytes of a request.
RECORD_ERRORS_MAX: Final = 10
COPIED_BYTES_PER_STEP: Final = 1 << 20


class Policy(Protocol):
    """The fields of an AdmissionPolicy that inspection uses."""

    @property
    def message_bytes_max(self) -> int: ...
    @property
    def timestamp_before_ms_max(self) -> Millis: ...
    @property
    def timestamp_after_ms_max(self) -> Millis: ...
    @property
    def is_append_time(self) -> bool: ...
    @property
    def is_compacted(self) -> bool: ...
    @property
    def codec(self) -> int | None: ...
    @property
    def compression_level(self) -> int | None: ...
    @property
    def decompressed_bytes_max(self) -> int: ...


class InvalidRecords(Refusal):
    """A batch refused for some of its records: `record_errors` are index and message of each."""

    def __init__(self, code: ErrorCode, record_errors: RecordErrors) -> None:
        if code == ErrorCode.INVALID_TIMESTAMP:
            message = "One or more records have been rejected due to invalid timestamp"
        else:
            shown = "; ".join(text for _, text in record_errors[:3])
            message = (
                f"One or more records have been rejected due to {len(record_errors)} record "
                f"errors in total, and only showing the first three errors at most: {shown}"
            )
        super().__init__(code, message)
        self.record_errors = record_errors


class Inspection(BatchScan):
    """Validate all records of a batch; `batch` is then the same one, or a rebuilt one.

    Raises a Refusal. Records are not kept in memory: a batch of one megabyte may hold a million.
    """

    def __init__(self, batch: Batch, policy: Policy, now: WallTime) -> None:
        self._codec = batch.codec if policy.codec is None else policy.codec
        self._is_repacked = self._codec != batch.codec
        bytes_max, bytes_per_us = policy.decompressed_bytes_max, None
        if self._is_repacked:
            bytes_per_us = PACKED_BYTES_PER_US
            if self._codec == Codec.NONE:  # The log would store the decompressed size.
                bytes_max = min(bytes_max, policy.message_bytes_max - HEADER_BYTES)
        super().__init__(batch, bytes_max, bytes_per_us)
        self._policy = policy
        self._now = now
        self._errors: RecordErrors = []
        self._code = ErrorCode.NONE

    def _walk(self, data: bytes) -> Iterator[int]:
        policy = self._policy
        self._errors, self._code = [], ErrorCode.NONE
        index, max_timestamp, is_sequential = -1, NO_TIMESTAMP, True
        needs_key, has_window = policy.is_compacted, not policy.is_append_time
        earliest = self._now - policy.timestamp_before_ms_max
        latest = self._now + policy.timestamp_after_ms_max
        for record in skim(self.batch, data):
            if isinstance(record, int):
                yield record
                continue
            index += 1
            offset, timestamp, has_key, _, _ = record
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            if offset != index:
                is_sequential = False
            if needs_key and not has_key:
                error = ErrorCode.INVALID_RECORD
                self._note(index, error, "Compacted topic cannot accept message without key")
            elif has_window and not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
                message = timestamp_out_of_range(timestamp, offset, policy, self._now)
                self._note(index, ErrorCode.INVALID_TIMESTAMP, message)
        if self._errors:
            raise InvalidRecords(self._code, self._errors)
        yield from self._settle(data, max_timestamp, is_sequential)

    def _settle(self, data: bytes, max_timestamp: int, is_sequential: bool) -> Iterator[int]:
        """Rebuild the batch if needed."""
        if self._is_repacked or not is_sequential:
            body: Buffer = data
            if self.batch.is_log_append_time or not is_sequential:
                body = yield from self._renumbered(data)
            is_estimated = self._is_repacked or self._codec == Codec.NONE
            yield 0 if is_estimated else len(body) // PACKED_BYTES_PER_US
            self._rebuild(body, max_timestamp)
        elif max_timestamp != self.batch.max_timestamp:
            # Consumers look up offsets by it, so the header must be right.
            self.batch.set_max_timestamp(max_timestamp)

    def _failed(self, failure: BadRecords) -> None:
        is_large = isinstance(failure, Oversized)
        code = ErrorCode.MESSAGE_TOO_LARGE if is_large else ErrorCode.INVALID_RECORD
        raise Refusal(code, str(failure)) from failure

    def _note(self, index: int, code: ErrorCode, message: str) -> None:
        self._code = self._code or code
        self._errors.append((index, message))
        if len(self._errors) == RECORD_ERRORS_MAX:
            raise InvalidRecords(self._code, self._errors)

    def _renumbered(self, data: bytes) -> Generator[int, None, bytearray]:
        """The same records with consecutive offsets and their own timestamps.

        The rest of each record is copied unchanged, a large record in several steps.
        """
        body, base_timestamp = bytearray(), self.batch.base_timestamp
        index, next_step = 0, COPIED_BYTES_PER_STEP
        for record in skim(self.batch, data):
            if isinstance(record, int):
                yield record
                continue
            _, timestamp, _, tail, end = record
            deltas = bytearray(1)  # Record attributes are unused.
            write_varint(wrap_int64(timestamp - base_timestamp), deltas)
            write_varint(index, deltas)
            write_varint(len(deltas) + end - tail, body)
            body += deltas
            index += 1
            for start in range(tail, end, COPIED_BYTES_PER_STEP):
                body += data[start : min(start + COPIED_BYTES_PER_STEP, end)]
                if len(body) >= next_step:
                    if self._codec == Codec.NONE:
                        self._check_size(body)
                    next_step = len(body) + COPIED_BYTES_PER_STEP
                    yield 0
        return body

    def _rebuild(self, body: Buffer, max_timestamp: int) -> None:
        batch = self.batch
        packed = compress(self._codec, body, self._policy.compression_level)
        self._check_size(packed)
        self.batch = Batch(
            rewrite(
                batch,
                packed,
                attributes=batch.attributes & TRANSACTIONAL | self._codec,
                base_timestamp=batch.base_timestamp,
                max_timestamp=max_timestamp,
                count=batch.count,
            )
        )

    def _check_size(self, packed: Buffer) -> None:
        """Refuse a batch that has grown beyond `max.message.bytes`."""
        size = HEADER_BYTES + len(packed)
        if size > self._policy.message_bytes_max:
            raise too_large(size, self._policy.message_bytes_max)


def too_large(size: int, bytes_max: int) -> Refusal:
    return Refusal(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size is {size} bytes which exceeds the maximum configured value of "
        f"{bytes_max}.",
    )


def timestamp_out_of_range(timestamp: int, offset: int, policy: Policy, now: WallTime) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp "
        f"should be within [{now - policy.timestamp_before_ms_max}, "
        f"{now + policy.timestamp_after_ms_max}]"
    )
