"""A walk over the records of a batch that keeps nothing of them but where and when they are.

Keys, values and headers are passed over by their lengths, and checked as a reader checks them. A
header may be as short as two bytes, and one record may have millions: the walk pauses among them,
too, and says what they have cost, since no header of a batch tells their number.
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
# Few, since those behind the last pause are not counted. An estimate, on the slow side.
HEADERS_PER_PAUSE: Final = 400
HEADERS_PAUSE_US: Final = 100

# Offset, timestamp, whether there is a key, where the length of the key begins, and where the
# record ends. A plain tuple: one with names takes three times as long to make.
Skimmed = tuple[Offset, int, bool, int, int]


def skim(batch: Batch, data: bytes) -> Iterator[Skimmed | int]:
    """Each record of `batch`, whose body unfolds to `data`; BadRecords where it makes no sense.

    Between them come pauses, each the microseconds that headers took since the last one.
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
            if position != end:  # Positions only grow: one past the end never comes back to it.
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
    """A record behind its length: its deltas of timestamp and offset, and whether it has a key.

    Then where the length of that begins, the number of headers, and where these begin.
    """
    delta, position = read_varint(data, position + 1, 64)  # Behind its attributes.
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
    """Where so many headers end; varints of one byte, nearly all, are read in place."""
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
        elif byte == 1:  # The length of a missing value is -1, whose varint is 1.
            position += 1
        else:
            size, position = read_varint(data, position)
            if size < -1:
                raise BadRecords(f"a length of {size}")
            position += max(size, 0)
    return position
