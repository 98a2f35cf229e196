"""Start positions of all records of a fetch: each length gives the position of the next record.

Batches are independent, so all of them are walked at once, one record of each per numpy step; a
table over a length's first two bytes gives the distance to the next record. A batch of many records
is split into lanes by guessing record starts. A guess is accepted only if the lane before it ends
exactly there, so the result equals that of the plain loop, which also takes over where lanes do not
pay (few records) or fail (a record of 8 KiB and more, a wrong guess). After many records of one
length, the loop checks at once how many more have it.
"""

from typing import Any

import numpy as np

from ottla.records.batch import Buffer
from ottla.spark.arrow.varints import Bytes, Ints

LANES_MIN = 40  # A step costs about as much as the plain loop for this many records.
LANE_RECORDS = 128
STEPS = 32  # Between two checks whether all lanes are done.
STEPS_MAX = 20 * LANE_RECORDS
GUESS_RECORD_BYTES_MAX = 400  # Beyond that, a batch has too few records for guessing to pay.
ALIKE_MIN = 32  # After this many records of one length, look for more of them at once.
RECORD_BYTES_MIN = 7  # Length, attributes, two deltas, two lengths, number of headers.
Words = np.ndarray[Any, np.dtype[np.uint16]]


def _advances() -> "np.ndarray[Any, np.dtype[np.int32]]":
    """From a length's first two bytes (little endian) to the size of the record.

    Zero if the length has more than two bytes.
    """
    words = np.arange(1 << 16)
    first, second = words & 0xFF, words >> 8
    one = 1 + (first >> 1)
    two = 2 + ((first & 0x7F | second << 7) >> 1)
    return np.where(first < 0x80, one, np.where(second < 0x80, two, 0)).astype(np.int32)


ADVANCES = _advances()
ADVANCE_LIST: list[int] = ADVANCES.tolist()  # Faster for single lookups.


def record_starts(data: Buffer, array: Bytes, starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """The starts of all records; batch `i` has `counts[i]` from `starts[i]` to `ends[i]`.

    ValueError or IndexError if the lengths do not add up.
    """
    words = _words(array)
    if int(counts.sum()) > LANES_MIN:
        lanes = _lanes(array, words, starts, ends, counts)
        if len(lanes) >= LANES_MIN:
            found = _walk_together(words, lanes, np.append(lanes[1:], ends[-1]), starts, ends)
            if found is not None and _has_counts(found, starts, counts):
                return found
    return _walk_one_by_one(data, words, starts.tolist(), ends.tolist(), counts.tolist())


def _words(array: Bytes) -> Words:
    """Each byte with the next one, without a copy."""
    if len(array) < 2:
        return np.empty(0, np.uint16)
    return np.lib.stride_tricks.as_strided(
        array[:2].view("<u2"), shape=(len(array) - 1,), strides=(1,), writeable=False
    )


def _lanes(array: Bytes, words: Words, starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """Starts of lanes: each batch, and guesses within batches of many small records."""
    large = np.flatnonzero(counts >= 2 * LANE_RECORDS)
    guesses = [
        _guess(array, words, int(starts[i]), int(ends[i]), int(counts[i]))
        for i in large
        if ends[i] - starts[i] <= counts[i] * GUESS_RECORD_BYTES_MAX
    ]
    return np.sort(np.concatenate([starts[counts > 0], *guesses])) if guesses else starts


def _guess(array: Bytes, words: Words, start: int, end: int, count: int) -> Ints:
    """Positions in a batch where three records seem to follow each other."""
    size = (end - start) // count + 1
    width = size + size // 2
    targets = np.linspace(start, end, count // LANE_RECORDS, endpoint=False, dtype=np.int64)[1:]
    last = len(words) - 3
    # The attributes of a record are always zero, after a length of one or two bytes.
    zeros = np.flatnonzero(array[np.minimum(targets[:, None] + np.arange(2, width + 2), last)] == 0)
    lane = zeros // width
    at = np.minimum(targets[lane] + 2 + zeros % width, last)
    at = at - 1 - (array[at - 2] > 0x7F)
    places = at
    for _ in range(3):
        advance = ADVANCES[words[at]]
        is_likely = (array[at + 1 + (array[at] > 0x7F)] == 0) & (advance >= RECORD_BYTES_MIN)
        is_likely &= advance < 8 * size
        at, lane, places = (at + advance)[is_likely], lane[is_likely], places[is_likely]
        at = np.minimum(at, last)
    _, first = np.unique(lane, return_index=True)
    found = places[first]
    result: Ints = np.unique(found[found < end])
    return result


def _walk_together(
    words: Words, lanes: Ints, lane_ends: Ints, starts: Ints, ends: Ints
) -> Ints | None:
    """None if a record is too long for the table, or a lane does not end at the next one."""
    # The last lane of a batch ends with the batch, not with the next batch's start.
    batch = np.searchsorted(starts, lanes, side="right") - 1
    lane_ends = np.minimum(lane_ends, ends[batch])
    last = len(words) - 1
    reached = [lanes]
    at = lanes
    # A finished lane walks on, but not beyond the buffer.
    while len(reached) <= STEPS_MAX:
        for _ in range(STEPS):
            at = at + ADVANCES[words[np.minimum(at, last)]]
            reached.append(at)
        if (at >= lane_ends).all():
            break
    by_lane = np.stack(reached, axis=1)
    is_before = by_lane < lane_ends[:, None]
    steps = is_before.sum(axis=1)
    if (steps == len(reached)).any():
        return None
    if (by_lane[np.arange(len(lanes)), steps] != lane_ends).any():
        return None
    result: Ints = by_lane[is_before]
    return result


def _has_counts(found: Ints, starts: Ints, counts: Ints) -> bool:
    """Whether each batch has its claimed number of records."""
    edges = np.append(np.searchsorted(found, starts), len(found))
    return bool((np.diff(edges) == counts).all())


def _walk_one_by_one(
    data: Buffer, words: Words, starts: list[int], ends: list[int], counts: list[int]
) -> Ints:
    """The only loop that touches each record in Python; it does nothing but the walk."""
    pieces: list[Ints] = []
    found: list[int] = []
    word_at, advances = words.item, ADVANCE_LIST
    for start, end, count in zip(starts, ends, counts, strict=True):
        position, left = start, count
        while left:
            first, steps = position, min(left, ALIKE_MIN)
            found.append(first)
            found += [
                position := position + (advances[word_at(position)] or _large(data, position))
                for _ in range(steps)
            ]
            found.pop()  # The end of the last record.
            left -= steps
            size = position - found[-1]
            if left and position - first == ALIKE_MIN * size:
                alike = _alike(words, position, size, left)
                if alike:
                    pieces.append(np.array(found, np.int64))
                    found = []
                    pieces.append(np.arange(position, position + alike * size, size))
                    position += alike * size
                    left -= alike
        if position != end:
            raise ValueError(f"{count} records end at byte {position}, their batch at {end}")
    pieces.append(np.array(found, np.int64))
    return np.concatenate(pieces)


def _alike(words: Words, position: int, size: int, most: int) -> int:
    """Number of records from here on, up to `most`, with the same length as the previous one."""
    if not ADVANCES[words[position - size]]:
        return 0  # Two bytes are not the whole length.
    is_same = words[position : position + most * size : size] == words[position - size]
    return len(is_same) if is_same.all() else int(is_same.argmin())


def _large(data: Buffer, position: int) -> int:
    """Size of a record whose length has more than two bytes."""
    at, size, shift = position, 0, 0
    while shift <= 28:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return at - position + (size >> 1)
        shift += 7
    raise ValueError("the length of a record has more than five bytes")
