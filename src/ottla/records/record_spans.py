"""Walk over the records of a batch that yields only offset, timestamp and positions.

Keys, values and headers are skipped by their lengths, with the checks of a full reader. A header
may be as short as two bytes, and one record may have millions: the walk pauses among them too and
reports their cost, since their number is not known in advance.
"""

from collections.abc import Iterator
from typing import Final

from ottla.model.types import Offset
from ottla.records.batch import LOG_APPEND_TIME, Batch
from ottla.records.record import (
    HEADER_BYTES_MIN,
    INT64_MAX,
    INT64_MIN,
    BadRecords,
    read_varint,
    wrap_int64,
)

RECORDS_PER_STEP: Final = 1000
# Small, since headers after the last pause are not counted. The cost is a pessimistic estimate.
HEADERS_PER_PAUSE: Final = 400
HEADERS_PAUSE_US: Final = 100

# Offset, timestamp, whether there is a key, position of the key's length, end of the record. A
# plain tuple: a named one takes three times as long to create.
Skimmed = tuple[Offset, int, bool, int, int]


def skim(batch: Batch, data: bytes) -> Iterator[Skimmed | int]:
    """Yield each record of `batch`, given its decompressed body `data`; BadRecords if malformed.

    An int between them is a pause: the microseconds spent on headers since the last one.
    """
    fixed = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    position, headers_left = 0, HEADERS_PER_PAUSE
    try:
        for number in range(1, batch.count + 1):
            size, position = read_varint(data, position)
            end = position + size
            if size < 0 or end > len(data):
                raise BadRecords(f"a record of {size} bytes, of which {len(data) - position} exist")
            delta, offset_delta, has_key, tail, count, position = _read_body(data, position, end)
            while count >= headers_left:
                position = _past_headers(data, position, headers_left)
                count, headers_left = count - headers_left, HEADERS_PER_PAUSE
                yield HEADERS_PAUSE_US
            if count:
                position = _past_headers(data, position, count)
                headers_left -= count
            if position != end:  # Positions only grow, so one past the end never matches.
                raise BadRecords(f"a record says that it ends at byte {end}, not at {position}")
            timestamp = base_timestamp + delta if fixed is None else fixed
            if not INT64_MIN <= timestamp <= INT64_MAX:
                timestamp = wrap_int64(timestamp)
            yield base_offset + offset_delta, timestamp, has_key, tail, end
            if not number % RECORDS_PER_STEP:
                yield 0
    except IndexError as failure:
        raise BadRecords("a record ends too early") from failure
    if position != len(data):
        raise BadRecords(f"{len(data) - position} bytes follow the last record")


def _read_body(data: bytes, position: int, end: int) -> tuple[int, int, bool, int, int, int]:
    """A record after its length field: timestamp and offset deltas, whether it has a key, position
    of the key's length, number of headers, position of the headers.
    """
    delta, position = read_varint(data, position + 1, 64)  # After the attributes.
    offset_delta, tail = read_varint(data, position)
    key_bytes, position = read_varint(data, tail)
    if key_bytes > 0:
        position += key_bytes
    value_bytes, position = read_varint(data, position)
    if value_bytes > 0:
        position += value_bytes
    if key_bytes < -1 or value_bytes < -1:
        raise BadRecords(f"a length of {min(key_bytes, value_bytes)}")
    count, position = read_varint(data, position)
    if count and not 0 < count <= (end - position) // HEADER_BYTES_MIN:
        raise BadRecords(f"a record of {end - position} more bytes claims {count} headers")
    return delta, offset_delta, key_bytes >= 0, tail, count, position


def _past_headers(data: bytes, position: int, count: int) -> int:
    """Position after `count` headers. One-byte varints, the usual case, are decoded inline."""
    for _ in range(count):
        byte = data[position]
        if byte < 0x80 and not byte & 1:
            position += 1 + (byte >> 1)
        else:
            size, position = read_varint(data, position)
            if size < 0:
                raise BadRecords("a header without a key")
            position += size
        byte = data[position]
        if byte < 0x80 and not byte & 1:
            position += 1 + (byte >> 1)
        elif byte == 1:  # -1, the length of a null value, is varint 1.
            position += 1
        else:
            size, position = read_varint(data, position)
            if size < -1:
                raise BadRecords(f"a length of {size}")
            position += max(size, 0)
    return position
