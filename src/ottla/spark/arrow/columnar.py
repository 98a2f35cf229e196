"""Record batches to Arrow, a whole fetch at a time: no Python object per record.

`record_walk` finds the start of each record; then numpy parses one field of all records at once, a
binary array is laid over the raw bytes with its offsets at the start and end of every key or value,
and `take` picks every second element. The result owns its memory: the input buffer may be reused at
once. Compressed batches are decompressed a few at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.records.batch import HEADER_BYTES, Batch, Buffer
from ottla.records.compression import CompressionError, decompress
from ottla.spark.arrow.batch_scan import Placed
from ottla.spark.arrow.header_columns import read_headers
from ottla.spark.arrow.record_walk import record_starts
from ottla.spark.arrow.schema import arrow_schema
from ottla.spark.arrow.varints import Bytes, Ints, TooLong, read_varints
from ottla.spark.errors import Unreadable

DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024
# Compressed batches are decompressed up to about this size at a time.
WINDOW_BYTES = 8 * 1024 * 1024
MICROS_PER_MS = 1000
TIMESTAMP_MS_MAX = (2**63 - 1) // MICROS_PER_MS
CREATE_TIME, LOG_APPEND_TIME = 0, 1


class Records(NamedTuple):
    """The records of some batches in one buffer: batch `i` has `counts[i]` of them."""

    data: Buffer
    starts: Ints
    ends: Ints
    counts: Ints
    batches: list[Batch]


class Fields(NamedTuple):
    """Positions of the fields of each record; a size of -1 is null."""

    key_start: Ints
    key_size: Ints
    value_start: Ints
    value_size: Ints
    headers_start: Ints
    end: Ints


class Decoder:
    """Creates Arrow batches of the chosen columns, for one partition of a topic."""

    def __init__(self, topic: str, partition: int, columns: Sequence[str]) -> None:
        self._topic = topic
        self._partition = partition
        self._columns = tuple(columns)
        self._schema = arrow_schema(columns)

    def decode(
        self, data: Buffer, placed: Sequence[Placed], start: int, end: int
    ) -> "Iterator[pa.RecordBatch]":
        """The records of these batches from offset `start` up to before `end`, if there are any."""
        try:
            for records in unfolded(data, placed):
                made = self._decode(records, start, end)
                if made is not None:
                    yield made
        except (CompressionError, IndexError, ValueError, TooLong, pa.ArrowInvalid) as failure:
            first, last = placed[0].batch.base_offset, placed[-1].batch.last_offset
            raise Unreadable(
                f"{self._topic}-{self._partition} holds records between the offsets {first} and"
                f" {last} that cannot be read: {failure}"
            ) from failure

    def _decode(self, records: Records, start: int, end: int) -> "pa.RecordBatch | None":
        data, _, _, counts, batches = records
        array = np.frombuffer(data, np.uint8)
        at = record_starts(data, array, records.starts, records.ends, counts)
        if not len(at):
            return None
        ends = np.empty_like(at)
        ends[:-1] = at[1:]
        ends[np.cumsum(counts) - 1] = records.ends
        _, at = read_varints(array, at)
        time_deltas, at = read_varints(array, at + 1)  # Record attributes are unused.
        deltas, at = read_varints(array, at)
        offsets = np.repeat(np.array([b.base_offset for b in batches], np.int64), counts) + deltas
        low, high = np.searchsorted(offsets, (start, end)).tolist()
        if low >= high:
            return None
        rows = slice(low, high)
        fields = _read_fields(array, at[rows], ends[rows])
        made: dict[str, Callable[[], Any]] = {
            "topic": lambda: pa.repeat(pa.scalar(self._topic, pa.string()), high - low),
            "partition": lambda: pa.repeat(pa.scalar(self._partition, pa.int32()), high - low),
            "offset": lambda: pa.array(offsets[rows]),
            "timestamp": lambda: self._timestamps(batches, counts, time_deltas, offsets, rows),
            "timestampType": lambda: _timestamp_types(batches, counts, rows),
            "headers": lambda: read_headers(data, array, fields.headers_start, fields.end),
            "key": lambda: _pick(data, fields.key_start, fields.key_size),
            "value": lambda: _pick(data, fields.value_start, fields.value_size),
        }
        arrays = [made[name]() for name in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _timestamps(
        self, batches: Sequence[Batch], counts: Ints, deltas: Ints, offsets: Ints, rows: slice
    ) -> "pa.Array":
        """Microseconds, as in Spark; all records of a LogAppendTime batch have one timestamp."""
        bases = [b.max_timestamp if b.is_log_append_time else b.base_timestamp for b in batches]
        times = np.repeat(np.array(bases, np.int64), counts)
        stamped = [b.is_log_append_time for b in batches]
        times += np.where(np.repeat(stamped, counts), 0, deltas) if any(stamped) else deltas
        times = times[rows]
        wrong = np.flatnonzero((times > TIMESTAMP_MS_MAX) | (times < -TIMESTAMP_MS_MAX))
        if wrong.size:
            place = f"{self._topic}-{self._partition} at offset {offsets[rows][wrong[0]]}"
            raise Unreadable(
                f"{place} has the timestamp {times[wrong[0]]} ms, which no timestamp of Spark can"
                " hold: leave it out with the option 'columns'"
            )
        return pa.array(times * MICROS_PER_MS).view(pa.timestamp("us", tz="UTC"))


def unfolded(data: Buffer, placed: Sequence[Placed]) -> Iterator[Records]:
    """The uncompressed records of the batches in place; compressed ones piece by piece."""
    if not any(batch.codec for _, batch in placed):
        starts = np.array([position for position, _ in placed], np.int64)
        ends = starts + np.array([batch.size - HEADER_BYTES for _, batch in placed], np.int64)
        yield _records(data, starts, ends, [batch for _, batch in placed])
        return
    bodies: list[Buffer] = []
    batches: list[Batch] = []
    size = 0
    for _, batch in placed:
        bodies.append(decompress(batch.codec, batch.body, DECOMPRESSED_BYTES_MAX))
        batches.append(batch)
        size += len(bodies[-1])
        if size >= WINDOW_BYTES:
            yield _joined(bodies, batches)
            bodies, batches, size = [], [], 0
    if batches:
        yield _joined(bodies, batches)


def _joined(bodies: Sequence[Buffer], batches: list[Batch]) -> Records:
    ends = np.cumsum([len(body) for body in bodies])
    starts = np.concatenate(([0], ends[:-1]))
    return _records(b"".join(bodies), starts, ends, batches)


def _records(data: Buffer, starts: Ints, ends: Ints, batches: list[Batch]) -> Records:
    counts = np.array([batch.count for batch in batches], np.int64)
    return Records(data, starts, ends, counts, batches)


def _read_fields(array: Bytes, at: Ints, ends: Ints) -> Fields:
    key_size, key_start = read_varints(array, at)
    value_size, value_start = read_varints(array, key_start + np.maximum(key_size, 0))
    headers_start = value_start + np.maximum(value_size, 0)
    if (key_size < -1).any() or (value_size < -1).any() or (headers_start >= ends).any():
        raise IndexError("a field of a record goes past the end of it")
    return Fields(key_start, key_size, value_start, value_size, headers_start, ends)


def _pick(data: Buffer, starts: Ints, sizes: Ints) -> "pa.Array":
    """A copy of the bytes at these ascending positions; null for a size of -1."""
    count = len(starts)
    is_null = sizes < 0
    if is_null.all():
        return pa.nulls(count, pa.binary())
    # Binary elements over the raw bytes: alternately one to pick and a gap.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = starts + np.maximum(sizes, 0)
    offsets[-1] = offsets[-2]
    overlay = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    indices = np.arange(0, 2 * count, 2, dtype=np.int32)
    return overlay.take(pa.array(indices, mask=is_null if is_null.any() else None))


def _timestamp_types(batches: Sequence[Batch], counts: Ints, rows: slice) -> "pa.Array":
    types = [LOG_APPEND_TIME if b.is_log_append_time else CREATE_TIME for b in batches]
    return pa.array(np.repeat(np.array(types, np.int32), counts)[rows])
