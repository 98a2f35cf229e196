"""Arrow columns to record batches v2, whole columns at a time and without a compiler.

The lengths and deltas of all records are computed by numpy into one buffer; Arrow joins them with
keys and values row by row, and the data of the joined array is the batches' body. The caller
decides which rows form a batch: consecutive rows of one partition.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.idempotence import Numbers
from ottla.records.batch import (
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    TRANSACTIONAL,
    UINT32,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import compress

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

VARINT_BYTES_MAX: Final = 10
RECORD_BYTES_MIN: Final = 7  # Length, attributes, two deltas, two lengths and the count of headers.
_NO_HEADERS: Final = pa.scalar(b"\x00", pa.binary())
_NOTHING: Final = pa.scalar(b"", pa.binary())


class Rows(NamedTuple):
    """Columns of the records; None for a column without any value."""

    key: Any  # A pyarrow.BinaryArray.
    value: Any
    headers: Any  # From `encode_headers`.
    timestamps_ms: Integers


class Body(NamedTuple):
    """The uncompressed records of one batch."""

    records: memoryview
    record_count: int
    base_timestamp: int
    max_timestamp: int


def encode(rows: Rows, starts: Sequence[int]) -> Iterator[Body]:
    """Encode one batch for the rows from each of `starts` to the next."""
    count = len(rows.timestamps_ms)
    assert starts[0] == 0, "every row belongs to a batch"
    assert count > starts[-1], "no batch is empty"
    begins = np.asarray(starts, dtype=np.int64)
    sizes = np.diff(begins, append=count)
    stamps = rows.timestamps_ms
    offset_deltas = np.arange(count, dtype=np.int64) - np.repeat(begins, sizes)
    stamp_deltas = stamps - np.repeat(stamps[begins], sizes)
    joined = _join(rows, stamp_deltas, offset_deltas)
    ends = np.frombuffer(joined.buffers()[1], dtype=np.int32)[joined.offset :]
    data = memoryview(joined.buffers()[2]) if ends[count] else memoryview(b"")
    latest = np.maximum.reduceat(stamps, begins)
    for start, size, newest in zip(begins.tolist(), sizes.tolist(), latest.tolist(), strict=True):
        records = data[ends[start] : ends[start + size]]
        yield Body(records, size, int(stamps[start]), newest)


def seal(body: Body, codec: int, numbers: Numbers, *, is_transactional: bool = False) -> bytearray:
    """A whole batch with its checksum, ready to be sent."""
    packed = compress(codec, body.records) if codec else body.records
    size = HEADER_BYTES + len(packed)
    data = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        data,
        0,
        0,
        size - LOG_OVERHEAD_BYTES,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        codec | (TRANSACTIONAL if is_transactional else 0),
        body.record_count - 1,
        body.base_timestamp,
        body.max_timestamp,
        *numbers,
        body.record_count,
    )
    data += packed
    UINT32.pack_into(data, 17, crc32c(memoryview(data)[CRC_START:]))
    return data


def record_sizes(rows: Rows) -> Integers:
    """Upper bound of each row's size in a batch."""
    stamps = rows.timestamps_ms
    spread = int(stamps.max() - stamps.min()) if len(stamps) else 0
    varints = _varint_sizes(_zigzag(np.array([spread, len(stamps)], dtype=np.int64)))
    fixed = RECORD_BYTES_MIN - 2 + int(varints.sum())
    contents = lengths(rows.key, len(stamps)).clip(0)
    contents += lengths(rows.value, len(stamps)).clip(0)
    if rows.headers is not None:
        contents += lengths(rows.headers, len(stamps))
    # Record, key and value lengths beyond 63 take more than one byte.
    longer: Integers = 3 * (_varint_sizes(_zigzag(contents + fixed)) - 1)
    return contents + fixed + longer


def encode_headers(headers: Any) -> Any:  # noqa: ANN401
    """Encode a list of (key, value) per row to the trailing bytes of its record; None if no row has
    any.
    """
    counts = pc.fill_null(pc.list_value_length(headers), 0)
    numbers = counts.to_numpy(zero_copy_only=False).astype(np.int64)
    if not numbers.any():
        return None
    entries = headers.flatten()
    keys, values = (_as_binary(field) for field in entries.flatten())
    if keys.null_count or entries.null_count:
        raise ValueError("a header has no key: every header needs one, its value may be null")
    key_sizes, value_sizes = lengths(keys, len(keys)), lengths(values, len(keys))
    encoded = _joined(_varint_array(key_sizes), keys, _varint_array(value_sizes), values)
    ends = np.frombuffer(encoded.buffers()[1], dtype=np.int32)
    borders = np.concatenate(([0], numbers.cumsum()))
    by_row = _binary(ends[borders], encoded.buffers()[2])
    return _joined(_varint_array(numbers), by_row)


def lengths(column: Any, count: int) -> Integers:  # noqa: ANN401
    """The length of each value; -1 for null, as in the record format."""
    if column is None:
        return np.full(count, -1, dtype=np.int64)
    assert len(column) == count, "every column has a value for each row"
    found = pc.binary_length(column)
    if found.null_count:
        found = pc.fill_null(found, -1)
    sizes: Integers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _join(rows: Rows, stamp_deltas: Integers, offset_deltas: Integers) -> Any:  # noqa: ANN401
    count = len(offset_deltas)
    key_sizes, value_sizes = lengths(rows.key, count), lengths(rows.value, count)
    numbers = [stamp_deltas, offset_deltas, key_sizes]
    zigzags = [_zigzag(column) for column in (*numbers, value_sizes)]
    widths = [_varint_sizes(column) for column in zigzags]
    body_sizes = 1 + sum(widths) + key_sizes.clip(0) + value_sizes.clip(0)
    if rows.headers is None:
        tail, body_sizes = _NO_HEADERS, body_sizes + 1
    else:
        tail, body_sizes = rows.headers, body_sizes + lengths(rows.headers, count)
    length = _zigzag(body_sizes)
    length_widths = _varint_sizes(length)
    ends = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(length_widths + 1 + sum(widths[:3]), out=ends[1:])
    prefix = np.zeros(int(ends[-1]), dtype=np.uint8)  # Record attributes stay zero.
    position = ends[:-1]
    _put_varints(prefix, position, length, length_widths)
    position = position + length_widths + 1
    for zigzag, width in zip(zigzags[:3], widths[:3], strict=True):
        _put_varints(prefix, position, zigzag, width)
        position = position + width
    starts = _binary(ends.astype(np.int32), pa.py_buffer(prefix))
    key = _NOTHING if rows.key is None else rows.key
    value = _NOTHING if rows.value is None else rows.value
    return _joined(starts, key, _varint_array(value_sizes), value, tail)


def _joined(*columns: Any) -> Any:  # noqa: ANN401
    return pc.binary_join_element_wise(
        *columns, _NOTHING, null_handling="replace", null_replacement=""
    )


def _as_binary(column: Any) -> Any:  # noqa: ANN401
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _varint_array(numbers: Integers) -> Any:  # noqa: ANN401
    """Each number as a varint, in a binary array."""
    zigzag = _zigzag(numbers)
    widths = _varint_sizes(zigzag)
    ends = np.zeros(len(numbers) + 1, dtype=np.int64)
    np.cumsum(widths, out=ends[1:])
    data = np.empty(int(ends[-1]), dtype=np.uint8)
    _put_varints(data, ends[:-1], zigzag, widths)
    return _binary(ends.astype(np.int32), pa.py_buffer(data))


def _binary(ends: npt.NDArray[np.int32], data: Any) -> Any:  # noqa: ANN401
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), data])


def _zigzag(numbers: Integers) -> npt.NDArray[np.uint64]:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _varint_sizes(zigzag: npt.NDArray[np.uint64]) -> Integers:
    sizes = np.ones(len(zigzag), dtype=np.int64)
    limit = 1 << 7
    largest = int(zigzag.max()) if len(zigzag) else 0
    while largest >= limit:
        sizes += zigzag >= np.uint64(limit)
        limit <<= 7
    return sizes


def _put_varints(
    out: Bytes, positions: Integers, zigzag: npt.NDArray[np.uint64], sizes: Integers
) -> None:
    """Write each number at its position; longer varints continue byte by byte."""
    for index in range(VARINT_BYTES_MAX):
        low = (zigzag & np.uint64(0x7F)).astype(np.uint8)
        is_last = sizes == index + 1
        if is_last.all():
            out[positions + index] = low
            return
        out[positions + index] = np.where(is_last, low, low | 0x80)
        rest = ~is_last
        positions, zigzag, sizes = positions[rest], zigzag[rest] >> np.uint64(7), sizes[rest]
