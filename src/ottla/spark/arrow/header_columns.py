"""The headers of many records as one Arrow column: a list of key and value, null without headers.

Step `n` reads the n-th header of every record that has as many. When few records are left, which
may have millions of headers, a plain loop reads those: a step costs as much as many of them.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from ottla.records.batch import Buffer
from ottla.records.record import HEADER_BYTES_MIN, read_varint
from ottla.spark.arrow.schema import HEADERS
from ottla.spark.arrow.varints import Bytes, Ints, read_varints

Offsets = np.ndarray[Any, np.dtype[np.int32]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

ROWS_MIN = 50  # A step costs about as much as the plain loop for this many headers.
CHUNK = 10_000
PAST_THE_END = "a header of a record goes past the end of it"


def read_headers(data: Buffer, array: Bytes, at: Ints, ends: Ints) -> "pa.Array":
    """`at` are the positions of the header counts, `ends` the ends of the records."""
    counts, at = read_varints(array, at)
    if (counts < 0).any() or (counts > (ends - at) // HEADER_BYTES_MIN).any():
        raise IndexError("a record claims more headers than it has bytes")
    lists = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=lists[1:])
    total = int(lists[-1])
    overlay = np.empty(4 * total + 1, np.int32)
    has_value = np.ones(total, bool)
    rows = np.flatnonzero(counts)
    at = at[rows]
    number = 0
    while rows.size >= ROWS_MIN:
        places = 4 * (lists[rows] + number)
        size, start = read_varints(array, at)
        overlay[places], overlay[places + 1] = start, start + size
        value_size, value_start = read_varints(array, start + np.maximum(size, 0))
        at = value_start + np.maximum(value_size, 0)
        overlay[places + 2], overlay[places + 3] = value_start, at
        has_value[lists[rows] + number] = value_size >= 0
        if (size < 0).any() or (value_size < -1).any() or (at > ends[rows]).any():
            raise IndexError(PAST_THE_END)
        number += 1
        goes_on = counts[rows] > number
        rows, at = rows[goes_on], at[goes_on]
    for row, position in zip(rows.tolist(), at.tolist(), strict=True):
        first, last = int(lists[row]) + number, int(lists[row + 1])
        places, flags = overlay[4 * first : 4 * last], has_value[first:last]
        _read_one_by_one(data, position, int(ends[row]), places, flags)
    overlay[-1] = overlay[-2] if total else 0
    return _column(data, overlay, lists, has_value, counts)


def _read_one_by_one(
    data: Buffer, position: int, end: int, places: Offsets, has_value: Mask
) -> None:
    """Fill in the positions and flags of the consecutive headers of one record."""
    for first in range(0, len(has_value), CHUNK):
        found: list[int] = []
        flags: list[bool] = []
        for _ in range(min(CHUNK, len(has_value) - first)):
            size, start = read_varint(data, position)
            value_size, value_start = read_varint(data, start + max(size, 0))
            position = value_start + max(value_size, 0)
            if size < 0 or value_size < -1 or position > end:
                raise IndexError(PAST_THE_END)
            found += (start, start + size, value_start, position)
            flags.append(value_size >= 0)
        places[4 * first : 4 * first + len(found)] = found
        has_value[first : first + len(flags)] = flags


def _column(
    data: Buffer, overlay: Offsets, lists: Offsets, has_value: Mask, counts: Ints
) -> "pa.Array":
    total = len(has_value)
    buffers = [None, pa.py_buffer(overlay), pa.py_buffer(data)]
    parts = pa.Array.from_buffers(pa.binary(), 4 * total, buffers)
    indices = np.arange(0, 4 * total, 4, dtype=np.int32)
    keys = _text(parts.take(pa.array(indices)))
    values = parts.take(pa.array(indices + 2, mask=~has_value))
    fields = [HEADERS.value_type.field(0), HEADERS.value_type.field(1)]
    pairs = pa.StructArray.from_arrays([keys, values], fields=fields)
    mask = pa.array(counts == 0)
    return pa.ListArray.from_arrays(pa.array(lists), pairs, mask=mask).cast(HEADERS)


def _text(keys: "pa.Array") -> "pa.Array":
    """Header keys are text; invalid UTF-8 is replaced as in Java."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.as_py().decode(errors="replace") for key in keys], pa.string())
