"""Validation of one produced batch before it is appended, as Apache Kafka does it.

`admit` reads the 61 bytes of header and the CRC, which is enough for most topics. It runs for every
produced batch, so the valid case is one chain of comparisons and errors are explained elsewhere.
Records are parsed only for compacted topics (keys), recompression, a lower bound on timestamps, or
full validation (`inspection`), and inline only within the caller's budget. The claimed record count
is bounded by the bytes present, or by the decompression limit.
"""

from dataclasses import dataclass, field
from typing import Final

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, WallTime
from ottla.records.batch import CRC_START, HEADER_BYTES, LOG_APPEND_TIME, MAGIC, Batch, Buffer
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.inspection import (
    RECORD_ERRORS_MAX,
    Inspection,
    InvalidRecords,
    timestamp_out_of_range,
    too_large,
)
from ottla.records.record import RECORD_BYTES_MIN
from ottla.records.scan import ScanBudget

ZSTD_SINCE_VERSION: Final = 7
UNBOUNDED_MS: Final = 2**63 - 1
HOUR_MS: Final = 3_600_000
COUNTED_BYTES_MIN: Final = 64
UNBOUNDED_US: Final = 1 << 62

CREATE_TIME: Final = "CreateTime"
APPEND_TIME: Final = "LogAppendTime"
CODEC_OF_NAME: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

# Attributes that need no further check: codec and transactional.
_PLAIN_ATTRIBUTES: Final = 0x17


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The topic configuration that validation depends on; strings are Kafka's values."""

    message_bytes_max: int = 1_048_588
    timestamp_type: str = CREATE_TIME
    timestamp_before_ms_max: Millis = UNBOUNDED_MS
    timestamp_after_ms_max: Millis = HOUR_MS
    compression_type: str = "producer"
    compression_level: int | None = None  # Of `compression_type`; None is the codec's default.
    is_compacted: bool = False
    full_validation: bool = False
    decompressed_bytes_max: int = 64 * 1024 * 1024  # A record counts as at least 64 bytes.

    codec: int | None = field(init=False, default=None)  # None: the producer's codec.
    is_append_time: bool = field(init=False, default=False)
    inspects_all: bool = field(init=False, default=False)
    is_plain: bool = field(init=False, default=False)  # Checking the header is enough.
    packed_count_max: int = field(init=False, default=0)  # Of a compressed batch.

    def __post_init__(self) -> None:
        codec = CODEC_OF_NAME.get(self.compression_type)
        assert codec is not None or self.compression_type == "producer", self.compression_type
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "is_append_time", self.timestamp_type == APPEND_TIME)
        bounds_age = not self.is_append_time and self.timestamp_before_ms_max < UNBOUNDED_MS // 2
        inspects_all = self.is_compacted or self.full_validation or bounds_age
        object.__setattr__(self, "inspects_all", inspects_all)
        is_plain = codec is None and not inspects_all and not self.is_append_time
        object.__setattr__(self, "is_plain", is_plain)
        count_max = self.decompressed_bytes_max // COUNTED_BYTES_MIN
        object.__setattr__(self, "packed_count_max", count_max)


def admit(
    data: Buffer,
    policy: AdmissionPolicy,
    now: WallTime,
    version: int,
    budget: ScanBudget | None = None,
) -> "Batch | Admission":
    """Return the batch in `data`, ready for `Log.stage`; raise Refusal with Kafka's code.

    The batch keeps `data` itself, unless its records had to be rewritten. Returns an Admission if
    the remaining work costs more than `budget`; without a budget (off the loop) all work is done at
    once.
    """
    size = len(data)
    if size < HEADER_BYTES:
        raise _refusal_of_fragment(data, version)
    batch = Batch(data)
    attributes = batch.attributes
    if not (
        batch.size == size
        and size <= policy.message_bytes_max
        and batch.magic == MAGIC
        and batch.crc == crc32c(memoryview(data)[CRC_START:])
        and batch.base_offset == 0
        and 0 < batch.count == batch.last_offset_delta + 1
        and (
            batch.count * RECORD_BYTES_MIN <= size - HEADER_BYTES
            or (attributes & 0x07 and batch.count <= policy.packed_count_max)
        )
        and not attributes & ~_PLAIN_ATTRIBUTES
        and (attributes & 0x07) <= 4
        and (batch.base_sequence >= 0 or batch.producer_id < 0)
        and (version >= ZSTD_SINCE_VERSION or attributes & 0x07 != Codec.ZSTD)
    ):
        _refuse_what_is_wrong(batch, size, policy, version)
    if policy.inspects_all or (policy.codec is not None and policy.codec != attributes & 0x07):
        admission = Admission(batch, policy, now)
        is_done = admission.run_within(budget or _unbounded())
        return admission.stamped(now) if is_done else admission
    if batch.max_timestamp - now > policy.timestamp_after_ms_max and not policy.is_append_time:
        raise _refusal_of_timestamp(batch, policy, now, budget or _unbounded())
    return _stamped(batch, policy, now)


class Admission(Inspection):
    """Unfinished validation of a batch: run its steps, then append `stamped` at once."""

    def __init__(self, batch: Batch, policy: AdmissionPolicy, now: WallTime) -> None:
        super().__init__(batch, policy, now)
        self._topic = policy

    def stamped(self, now: WallTime) -> Batch:
        """The validated batch, with LogAppendTime set to `now`: other batches may have been
        appended during the scan.
        """
        return _stamped(self.batch, self._topic, now)


def _unbounded() -> ScanBudget:
    return ScanBudget(UNBOUNDED_US)


def _stamped(batch: Batch, policy: AdmissionPolicy, now: WallTime) -> Batch:
    if policy.is_append_time:
        batch.stamp_append_time(now)
    elif batch.attributes & LOG_APPEND_TIME:
        batch.clear_append_time()
    return batch


def _refusal_of_fragment(data: Buffer, version: int) -> Refusal:
    """For input shorter than a batch header."""
    if len(data) >= 17:
        length = int.from_bytes(data[8:12], "big", signed=True)
        magic = data[16]
        if length < 14 or magic > MAGIC or (magic == MAGIC and length + 12 <= len(data)):
            return Refusal(
                ErrorCode.CORRUPT_MESSAGE, f"a record batch of {len(data)} bytes has no header"
            )
    return _refusal_of_count(version)


def _refusal_of_count(version: int) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_RECORD,
        f"Produce requests with version {version} are only allowed to contain exactly one record "
        "batch per partition",
    )


def _refuse_what_is_wrong(batch: Batch, size: int, policy: AdmissionPolicy, version: int) -> None:
    """Raise for the first error, in the order in which Apache Kafka would find it.

    Returns if there is none: the attributes are unusual, but allowed.
    """
    _refuse_bad_frame(batch, size, version)
    if batch.base_offset != 0:
        raise _invalid(f"a produced batch starts at offset 0, not {batch.base_offset}")
    if size > policy.message_bytes_max:
        raise too_large(size, policy.message_bytes_max)
    if not batch.is_valid:
        raise Refusal(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {batch.crc}): its checksum does not match",
        )
    if batch.last_offset_delta < 0:
        raise _invalid(f"Batch has an invalid offset range: [0, {batch.last_offset_delta}]")
    if batch.count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {batch.count}")
    if batch.count != batch.last_offset_delta + 1:
        raise _invalid(
            f"Inconsistent batch offset range [0, {batch.last_offset_delta}] and count of records "
            f"{batch.count}"
        )
    _refuse_false_count(batch, policy)
    if batch.is_control:
        raise _invalid("Clients are not allowed to write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
            f"{batch.producer_id}"
        )
    if batch.is_log_append_time and policy.is_append_time:
        raise InvalidRecords(
            ErrorCode.INVALID_TIMESTAMP,
            [
                (index, "Producer should not set timestamp type to LogAppendTime.")
                for index in range(min(batch.count, RECORD_ERRORS_MAX))
            ],
        )


def _refuse_bad_frame(batch: Batch, size: int, version: int) -> None:
    """Check sizes, magic and codec: whether `data` is exactly one batch."""
    length = batch.size - 12
    if length < 14 or batch.magic > MAGIC or batch.magic < 0:
        raise Refusal(
            ErrorCode.CORRUPT_MESSAGE,
            f"a record batch of length {length} and magic {batch.magic} does not exist",
        )
    if batch.size > size:
        raise _refusal_of_count(version)
    if batch.magic != MAGIC:
        raise _invalid(
            f"Produce requests with version {version} are only allowed to contain record batches "
            f"with magic version 2, not {batch.magic}"
        )
    if batch.codec == Codec.ZSTD and version < ZSTD_SINCE_VERSION:
        raise Refusal(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if batch.size < size:
        raise _refusal_of_count(version)
    if batch.codec > Codec.ZSTD:
        raise Refusal(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {batch.codec}"
        )


def _refuse_false_count(batch: Batch, policy: AdmissionPolicy) -> None:
    """Refuse more records than the bytes can hold, or than may be decompressed."""
    body_bytes = batch.size - HEADER_BYTES
    if batch.count * RECORD_BYTES_MIN <= body_bytes:
        return
    if not batch.codec:
        raise _invalid(f"{body_bytes} bytes cannot hold {batch.count} records")
    if batch.count > policy.packed_count_max:
        raise Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"A compressed batch of {batch.count} records exceeds the maximum of "
            f"{policy.packed_count_max}.",
        )


def _refusal_of_timestamp(
    batch: Batch, policy: AdmissionPolicy, now: WallTime, budget: ScanBudget
) -> Refusal:
    """Refusal for a max timestamp too far in the future; lists the offending records."""
    try:
        Inspection(batch, policy, now).run_within(budget)
    except Refusal as refusal:
        return refusal
    # Only the header is wrong, or there are too many records to find the offending one.
    return InvalidRecords(
        ErrorCode.INVALID_TIMESTAMP,
        [(0, timestamp_out_of_range(batch.max_timestamp, 0, policy, now))],
    )


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_RECORD, message)
