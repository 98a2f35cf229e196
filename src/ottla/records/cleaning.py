"""Compaction of one batch: which of its records are retained, and the resulting batch.

A record is retained while no later one has its key. A tombstone is retained until the delete
horizon of its batch (KIP-534): the base timestamp, once attribute bit 6 is set. Offsets never
change: the resulting batch keeps its base offset, last offset and producer sequence, and record
bytes are copied, not re-encoded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ottla.model.types import Millis, Offset, WallTime
from ottla.records.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Batch,
    Buffer,
    rewrite,
)
from ottla.records.compression import compress
from ottla.records.record import (
    INT64_MAX,
    INT64_MIN,
    BadRecords,
    decompress_body,
    read_varint,
    wrap_int64,
    write_varint,
)


class LatestOffsets(Protocol):
    """The last offset of each key, for records below `end_offset`."""

    @property
    def end_offset(self) -> Offset: ...

    def latest(self, key: bytes) -> Offset:
        """The last known offset of `key`, or -1."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision about a batch before its records are parsed."""

    is_discarded: bool = False  # Drop all records: an aborted transaction, or an expired marker.
    is_kept_empty: bool = False  # Keep the header alone: it holds a producer's last sequence.
    is_marker_of_nothing: bool = False  # A marker whose transaction has no records left.


@dataclass(frozen=True, slots=True)
class CleaningRules:
    now: WallTime
    delete_retention_ms: Millis
    decompressed_bytes_max: int


# Position of a record in the decompressed body, and the fields that decide its retention: start,
# end, position of its offset delta, timestamp and offset deltas, key, whether it has a value. A
# plain tuple: a named one takes three times as long to create.
_Span = tuple[int, int, int, int, int, bytes | None, bool]


def delete_horizon(batch: Batch) -> int | None:
    """When the tombstones of the batch may be removed; None if not decided yet."""
    return batch.base_timestamp if batch.attributes & DELETE_HORIZON else None


def keys_of(batch: Batch, bytes_max: int) -> Iterator[tuple[Offset, bytes]]:
    """Offset and key of every record that has a key; BadRecords if the batch is malformed."""
    base_offset = batch.base_offset
    for _, _, _, _, offset_delta, key, _ in _spans(decompress_body(batch, bytes_max), batch.count):
        if key is not None:
            yield base_offset + offset_delta, key


def clean_batch(
    batch: Batch, offsets: LatestOffsets, verdict: Verdict, rules: CleaningRules
) -> Buffer | None:
    """The retained bytes: the batch unchanged, a smaller one, only its header, or None."""
    if verdict.is_discarded:
        return _empty(batch) if verdict.is_kept_empty else None
    data = decompress_body(batch, rules.decompressed_bytes_max)
    kept = _kept(batch, data, offsets, rules.now)
    if not kept.count:
        return _empty(batch) if verdict.is_kept_empty else None
    begins_to_go = verdict.is_marker_of_nothing or kept.has_tombstones
    if begins_to_go and not batch.attributes & DELETE_HORIZON:
        horizon = min(rules.now + rules.delete_retention_ms, INT64_MAX)
        body = _rebased(kept, batch.base_timestamp - horizon)
        return _rebuilt(batch, kept, body, batch.attributes | DELETE_HORIZON, horizon)
    if kept.count == batch.count:
        return batch.data
    return _rebuilt(batch, kept, kept.body, batch.attributes, batch.base_timestamp)


@dataclass(slots=True)
class _Kept:
    body: Buffer
    count: int
    has_tombstones: bool
    timestamp_delta_max: int


def _kept(batch: Batch, data: bytes, offsets: LatestOffsets, now: WallTime) -> _Kept:
    """Retained part of a decompressed body. Adjacent retained records are copied in one piece."""
    horizon = delete_horizon(batch)
    is_past_horizon = horizon is not None and horizon <= now
    base_offset, end_offset, latest = batch.base_offset, offsets.end_offset, offsets.latest
    is_control = batch.is_control
    kept = _Kept(b"", 0, False, INT64_MIN)
    pieces = bytearray()
    run_start = 0
    for start, end, _, timestamp_delta, offset_delta, key, has_value in _spans(data, batch.count):
        offset = base_offset + offset_delta
        if not (
            is_control
            or offset >= end_offset
            or (key is not None and (has_value or not is_past_horizon) and offset >= latest(key))
        ):
            pieces += data[run_start:start]
            run_start = end
            continue
        kept.count += 1
        if not has_value:
            kept.has_tombstones = True
        if timestamp_delta > kept.timestamp_delta_max:
            kept.timestamp_delta_max = timestamp_delta
    if run_start:
        pieces += data[run_start:]
        kept.body = pieces
    else:
        kept.body = data
    return kept


def _spans(data: bytes, count: int) -> Iterator[_Span]:
    """Yield every record of a decompressed body lazily: a small batch may hold millions.

    One-byte varints, the usual case, are decoded inline.
    """
    position = 0
    try:
        for _ in range(count):
            start = position
            byte, more = data[position], data[position + 1]
            if byte < 0x80:
                size, position = (byte >> 1) ^ -(byte & 1), position + 1
            elif more < 0x80 and not byte & 1:
                size, position = (byte & 0x7F | more << 7) >> 1, position + 2
            else:
                size, position = read_varint(data, position)
            end = position + size
            position += 1  # Record attributes are unused.
            byte = data[position]
            if byte < 0x80:
                timestamp_delta, after = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                timestamp_delta, after = read_varint(data, position, 64)
            byte = data[after]
            if byte < 0x80:
                offset_delta, position = byte >> 1, after + 1
            else:
                offset_delta, position = read_varint(data, after)
            byte = data[position]
            if byte < 0x80:
                key_bytes, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                key_bytes, position = read_varint(data, position)
            key = data[position : position + key_bytes] if key_bytes >= 0 else None
            position += max(key_bytes, 0)
            if not start < position < end <= len(data):
                raise BadRecords(f"a record of {size} bytes at byte {start} of {len(data)}")
            # The length of a missing value is -1, whose varint is 1.
            has_value = data[position] != 1
            yield start, end, after, timestamp_delta, offset_delta, key, has_value
            position = end
    except IndexError as failure:
        raise BadRecords("a record ends too early") from failure
    if position != len(data):
        raise BadRecords(f"{len(data) - position} bytes follow the last record")


def _rebased(kept: _Kept, shift: int) -> bytes:
    """The records with `shift` added to each timestamp delta, for another base timestamp."""
    out = bytearray()
    for _, end, after, timestamp_delta, _, _, _ in _spans(bytes(kept.body), kept.count):
        timestamp = bytearray()
        write_varint(wrap_int64(timestamp_delta + shift), timestamp)
        write_varint(1 + len(timestamp) + end - after, out)
        out.append(0)
        out += timestamp
        out += kept.body[after:end]
    return bytes(out)


def _rebuilt(
    batch: Batch, kept: _Kept, body: Buffer, attributes: int, base_timestamp: int
) -> bytearray:
    max_timestamp = batch.max_timestamp
    if not attributes & LOG_APPEND_TIME:
        latest = batch.base_timestamp + kept.timestamp_delta_max
        # Else it wraps around, and the header's value is right.
        if INT64_MIN <= latest <= INT64_MAX:
            max_timestamp = latest
    codec = attributes & CODEC_MASK
    if codec:
        body = compress(codec, body)
    return rewrite(
        batch,
        body,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        count=kept.count,
    )


def _empty(batch: Batch) -> bytearray:
    """The header alone, as Kafka writes it."""
    attributes = batch.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return rewrite(
        batch,
        b"",
        attributes=attributes,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        count=0,
    )
