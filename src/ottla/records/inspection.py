"""The slow look at a produced batch, record by record, and its recompression.

Only for topics that ask for it (`admission` decides). Answers are Apache Kafka's: the batch is
refused as a whole, with an error for each record that is at fault.
"""

from collections.abc import Sequence
from typing import Protocol

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, WallTime
from ottla.records.batch import NO_TIMESTAMP, Batch
from ottla.records.compression import CompressionError, TooLarge
from ottla.records.record import BadRecords, Record, build_batch, read_records

RecordErrors = list[tuple[int, str]]


class Policy(Protocol):
    """What inspection needs of an AdmissionPolicy."""

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


def inspect(batch: Batch, policy: Policy, now: WallTime) -> Batch:
    """The same batch, or one rebuilt with the topic's codec; raises a Refusal."""
    try:
        records = list(read_records(batch, policy.decompressed_bytes_max))
    except BadRecords as failure:
        cause = failure.__cause__
        if isinstance(cause, TooLarge):
            raise Refusal(ErrorCode.MESSAGE_TOO_LARGE, str(cause)) from failure
        if isinstance(cause, CompressionError):
            raise Refusal(ErrorCode.INVALID_RECORD, str(cause)) from failure
        raise Refusal(ErrorCode.INVALID_RECORD, str(failure)) from failure
    _refuse_bad_records(records, policy, now)
    is_sequential = all(record.offset == index for index, record in enumerate(records))
    if policy.codec not in (None, batch.codec) or not is_sequential:
        return _rebuild(batch, records, policy)
    max_timestamp = max(record.timestamp for record in records)
    if max_timestamp != batch.max_timestamp:
        batch.set_max_timestamp(max_timestamp)  # Consumers seek by it: the header must not lie.
    return batch


def timestamp_out_of_range(timestamp: int, offset: int, policy: Policy, now: WallTime) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp "
        f"should be within [{now - policy.timestamp_before_ms_max}, "
        f"{now + policy.timestamp_after_ms_max}]"
    )


def _refuse_bad_records(records: Sequence[Record], policy: Policy, now: WallTime) -> None:
    errors: RecordErrors = []
    code = ErrorCode.NONE
    for index, record in enumerate(records):
        if policy.is_compacted and record.key is None:
            errors.append((index, "Compacted topic cannot accept message without key"))
            code = code or ErrorCode.INVALID_RECORD
        elif (
            not policy.is_append_time
            and record.timestamp != NO_TIMESTAMP
            and (
                now - record.timestamp > policy.timestamp_before_ms_max
                or record.timestamp - now > policy.timestamp_after_ms_max
            )
        ):
            message = timestamp_out_of_range(record.timestamp, record.offset, policy, now)
            errors.append((index, message))
            code = code or ErrorCode.INVALID_TIMESTAMP
    if errors:
        raise InvalidRecords(code, errors)


def _rebuild(batch: Batch, records: Sequence[Record], policy: Policy) -> Batch:
    renumbered = [record._replace(offset=index) for index, record in enumerate(records)]
    return Batch(
        build_batch(
            renumbered,
            codec=batch.codec if policy.codec is None else policy.codec,
            level=policy.compression_level,
            base_offset=0,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
        )
    )
