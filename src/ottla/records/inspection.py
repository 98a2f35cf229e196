"""The slow look at a produced batch, record by record, and its recompression.

Only for topics that ask for it (`admission` decides). Answers are Apache Kafka's: the batch is
refused as a whole, with an error for each record that is at fault.
"""

from typing import Final, Protocol

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, WallTime
from ottla.records.batch import NO_TIMESTAMP, Batch
from ottla.records.compression import TooLarge
from ottla.records.record import BadRecords, build_batch, read_records

RecordErrors = list[tuple[int, str]]
RECORD_ERRORS_MAX: Final = 1000  # Whoever sends worse does not read them all.


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
    """The same batch, or one rebuilt with the topic's codec; raises a Refusal.

    Records are looked at one by one and never kept: a batch of one megabyte may hold millions.
    """
    try:
        max_timestamp, is_sequential = _look(batch, policy, now)
        if policy.codec not in (None, batch.codec) or not is_sequential:
            return _rebuild(batch, policy)
    except BadRecords as failure:
        # A name for the cause would close a circle with this frame, and what was unfolded so far
        # would wait for the collector.
        if isinstance(failure.__cause__, TooLarge):
            raise Refusal(ErrorCode.MESSAGE_TOO_LARGE, str(failure.__cause__)) from failure
        raise Refusal(ErrorCode.INVALID_RECORD, str(failure)) from failure
    if max_timestamp != batch.max_timestamp:
        batch.set_max_timestamp(max_timestamp)  # Consumers seek by it: the header must not lie.
    return batch


def timestamp_out_of_range(timestamp: int, offset: int, policy: Policy, now: WallTime) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp "
        f"should be within [{now - policy.timestamp_before_ms_max}, "
        f"{now + policy.timestamp_after_ms_max}]"
    )


def _look(batch: Batch, policy: Policy, now: WallTime) -> tuple[int, bool]:
    """The greatest timestamp, and whether offsets go up by one; refuses bad records."""
    errors: RecordErrors = []
    code = ErrorCode.NONE
    max_timestamp = NO_TIMESTAMP
    is_sequential = True
    needs_key, has_window = policy.is_compacted, not policy.is_append_time
    earliest = now - policy.timestamp_before_ms_max
    latest = now + policy.timestamp_after_ms_max
    for index, record in enumerate(read_records(batch, policy.decompressed_bytes_max)):
        timestamp = record.timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if record.offset != index:
            is_sequential = False
        if needs_key and record.key is None:
            error = ErrorCode.INVALID_RECORD
            message = "Compacted topic cannot accept message without key"
        elif has_window and not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            error = ErrorCode.INVALID_TIMESTAMP
            message = timestamp_out_of_range(timestamp, record.offset, policy, now)
        else:
            continue
        code = code or error
        errors.append((index, message))
        if len(errors) == RECORD_ERRORS_MAX:
            break
    if errors:
        raise InvalidRecords(code, errors)
    return max_timestamp, is_sequential


def _rebuild(batch: Batch, policy: Policy) -> Batch:
    records = read_records(batch, policy.decompressed_bytes_max)
    return Batch(
        build_batch(
            (record._replace(offset=index) for index, record in enumerate(records)),
            codec=batch.codec if policy.codec is None else policy.codec,
            level=policy.compression_level,
            base_offset=0,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
        )
    )
