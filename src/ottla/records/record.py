"""The records inside a batch: a lazy, bounded reader and a builder.

One-byte varints, the usual case, are decoded inline: that is most of the speed. Timestamps are 64
bits wide and wrap around, as in Java: a client's base and delta may overflow. Lengths and offset
deltas are 32 bits wide.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.types import Offset
from ottla.records.batch import (
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    UINT32,
    Batch,
    Buffer,
    checksum,
)
from ottla.records.compression import CompressionError, TooLarge, compress, decompress

# Length, attributes, two deltas, the lengths of key and value, the number of headers.
RECORD_BYTES_MIN: Final = 7
HEADER_BYTES_MIN: Final = 2  # The lengths of key and value.
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

CONTROL_KEY: Final = Struct(">hh")  # Version and type of a control record.

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    offset: Offset
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class BadRecords(ValueError):
    """The body of a batch does not match its header."""


class Oversized(BadRecords):
    """The records decompress to more than the bound."""


def read_records(batch: Batch, bytes_max: int) -> Iterator[Record]:
    """Yield each record of `batch` lazily; BadRecords if the bytes are malformed."""
    return records_in(batch, decompress_body(batch, bytes_max))


def decompress_body(batch: Batch, bytes_max: int) -> bytes:
    """The decompressed body; BadRecords if it is too small for the claimed number of records."""
    try:
        data = bytes(decompress(batch.attributes & 0x07, batch.body, bytes_max))
    except TooLarge as failure:
        raise Oversized(str(failure)) from failure
    except CompressionError as failure:
        raise BadRecords(str(failure)) from failure
    if batch.count * RECORD_BYTES_MIN > len(data):
        raise BadRecords(f"{len(data)} bytes cannot hold {batch.count} records")
    return data


def records_in(batch: Batch, data: bytes) -> Iterator[Record]:
    """The records of `batch`, given its decompressed body `data`."""
    fixed = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    delta_min, delta_max = INT64_MIN - base_timestamp, INT64_MAX - base_timestamp
    position = 0
    try:
        for _ in range(batch.count):
            size, position = read_varint(data, position)
            end = position + size
            if size < 0 or end > len(data):
                raise BadRecords(f"a record of {size} bytes, of which {len(data) - position} exist")
            delta, offset_delta, key, value, headers = _read_body(data, position, end)
            if fixed is not None:
                timestamp = fixed
            elif delta_min <= delta <= delta_max:
                timestamp = base_timestamp + delta
            else:
                timestamp = wrap_int64(base_timestamp + delta)
            position = end
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError as failure:
        raise BadRecords("a record ends too early") from failure
    if position != len(data):
        raise BadRecords(f"{len(data) - position} bytes follow the last record")


def _read_body(
    data: bytes, position: int, end: int
) -> tuple[int, int, bytes | None, bytes | None, Headers]:
    """One record after its length field: timestamp and offset deltas, key, value, headers."""
    position += 1  # Record attributes are unused.
    byte = data[position]
    if byte < 0x80:
        timestamp_delta = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        timestamp_delta, position = read_varint(data, position, 64)
    byte = data[position]
    if byte < 0x80:
        offset_delta = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        offset_delta, position = read_varint(data, position)
    key, position = read_bytes(data, position, end)
    value, position = read_bytes(data, position, end)
    if data[position] == 0:
        headers: Headers = ()
        position += 1
    else:
        headers, position = _read_headers(data, position, end)
    if position != end:
        raise BadRecords(f"a record says that it ends at byte {end}, but does at {position}")
    return timestamp_delta, offset_delta, key, value, headers


def read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """A length-prefixed key or value, and its end position."""
    byte = data[position]
    if byte < 0x80:
        size = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        size, position = read_varint(data, position)
    if size < 0:
        if size != -1:
            raise BadRecords(f"a length of {size}")
        return None, position
    if position + size > end:
        raise BadRecords(f"a field of {size} bytes goes past the end of its record")
    return data[position : position + size], position + size


def _read_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= (end - position) // HEADER_BYTES_MIN:
        raise BadRecords(f"a record of {end - position} more bytes claims {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = read_bytes(data, position, end)
        if key is None:
            raise BadRecords("a header without a key")
        value, position = read_bytes(data, position, end)
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), position


def read_varint(data: Buffer, position: int, bits: int = 32) -> tuple[int, int]:
    """A zigzag varint and its end position; IndexError if the data is too short."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift >= bits:
            raise BadRecords(f"a varint of more than {bits} bits")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >> bits:
        raise BadRecords(f"a varint of more than {bits} bits")
    return (value >> 1) ^ -(value & 1), position


def wrap_int64(value: int) -> int:
    """`value` wrapped to 64-bit two's complement."""
    return (value - INT64_MIN) % 2**64 + INT64_MIN


def write_varint(value: int, out: bytearray) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


# Precomputed varints of small non-negative numbers.
_SMALL: Final[tuple[bytes, ...]] = tuple(
    bytes((n << 1,)) if n < 64 else bytes(((n << 1) & 0x7F | 0x80, n >> 6)) for n in range(8192)
)


def _varint(value: int) -> bytes:
    if 0 <= value < 8192:
        return _SMALL[value]
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


def encode_record(record: Record, *, base_offset: Offset, base_timestamp: int) -> bytes:
    """A record with its length prefix, as in an uncompressed batch."""
    _, _, key, value, headers = record
    parts = [
        b"\x00",
        _varint(wrap_int64(record.timestamp - base_timestamp)),
        _varint(record.offset - base_offset),
    ]
    _put_bytes(key, parts)
    _put_bytes(value, parts)
    if headers:
        parts.append(_varint(len(headers)))
        for name, content in headers:
            _put_bytes(name.encode(), parts)
            _put_bytes(content, parts)
    else:
        parts.append(b"\x00")
    body = b"".join(parts)
    return _varint(len(body)) + body


def _put_bytes(data: bytes | None, parts: list[bytes]) -> None:
    if data is None:
        parts.append(b"\x01")
    else:
        parts.append(_varint(len(data)))
        parts.append(data)


def build_batch(
    records: Iterable[Record],
    *,
    codec: int = 0,
    level: int | None = None,
    base_offset: Offset | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    last_offset: Offset | None = None,
    append_time: int | None = None,
) -> bytearray:
    """A whole batch, sealed. Records keep their offsets, so gaps (compaction) are allowed.

    `base_offset` and `last_offset` default to those of the first and the last record.
    """
    body = bytearray()
    count = 0
    base_timestamp = max_timestamp = NO_TIMESTAMP
    first = last = 0 if base_offset is None else base_offset
    for record in records:
        last, timestamp = record.offset, record.timestamp
        if count == 0:
            first = last if base_offset is None else base_offset
            base_timestamp = timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        body += encode_record(record, base_offset=first, base_timestamp=base_timestamp)
        count += 1
    assert count or base_offset is not None, "an empty batch needs a base offset"
    if last_offset is None:
        last_offset = last
    packed: Buffer = compress(codec, body, level) if codec else body
    attributes = (
        codec
        | (LOG_APPEND_TIME if append_time is not None else 0)
        | (TRANSACTIONAL if is_transactional else 0)
        | (CONTROL if is_control else 0)
    )
    size = HEADER_BYTES + len(packed)
    data = bytearray(size)
    HEADER.pack_into(
        data,
        0,
        first,
        size - LOG_OVERHEAD_BYTES,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset - first,
        base_timestamp,
        max_timestamp if append_time is None else append_time,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    data[HEADER_BYTES:] = packed
    UINT32.pack_into(data, 17, checksum(data))
    return data
