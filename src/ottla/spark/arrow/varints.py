"""Vectorised varints: each numpy step reads one byte of all of them.

Nearly all varints of records have one or two bytes, so a column of them costs two or three passes.
"""

from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

SHIFT_MAX = 63


class TooLong(ValueError):
    """A varint of more than ten bytes."""


def read_varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The zigzag varints at positions `at`, and their end positions.

    IndexError if one starts or continues beyond the data.
    """
    first = data[at]
    ends = at + 1
    raw = first.astype(np.int64)
    more = np.flatnonzero(first > 0x7F)
    if more.size:
        raw[more] &= 0x7F
        shift = 7
        while more.size:
            if shift > SHIFT_MAX:
                raise TooLong("a varint of more than ten bytes")
            byte = data[ends[more]].astype(np.int64)
            raw[more] |= (byte & 0x7F) << shift
            ends[more] += 1
            more = more[byte > 0x7F]
            shift += 7
    # The shift must be unsigned: the tenth byte sets the sign bit.
    values = (raw.view(np.uint64) >> np.uint64(1)).view(np.int64)
    values ^= -(raw & 1)
    return values, ends
