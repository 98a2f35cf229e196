"""Reads a stretch of a log whose records replace each other, and keeps only the last of each key.

A log of state says the same things over and over: to find them by their bytes costs a tenth of
decoding them all. What replaces nothing stays where it is, and nothing moves past it; batches of
transactions, and those that cannot be read, are handed on as they are.
"""

from typing import NamedTuple

from ottla.model.types import Offset
from ottla.records.batch import HEADER_BYTES, Batch
from ottla.records.record import BadRecords, read_bytes, read_varint, unfold
from ottla.records.skimming import skim

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
RECORDS_MAX = 100_000  # After so many the batches that follow are left for the next call.

Stored = tuple[Offset, bytes, bytes | None]  # A record as it lies in the log: offset, key, value.


class Folded(NamedTuple):
    steps: list[list[Stored] | Batch]
    next_offset: Offset | None  # None: there is no whole batch.


def fold(data: bytes, replaced: tuple[bytes, ...]) -> Folded:
    """What `data` comes to, where a record is replaced by a later one if their keys are equal.

    That holds for keys with one of these beginnings. A batch that is cut at the end is left out,
    and so is what follows very many records: a few bytes of a compressed batch may hold a million.
    """
    steps: list[list[Stored] | Batch] = []
    run: list[Stored] = []
    latest: dict[bytes, Stored] = {}

    def end_run() -> None:
        run.extend(sorted(latest.values()))
        latest.clear()

    next_offset: Offset | None = None
    position = count = 0
    while len(data) - position >= HEADER_BYTES and count < RECORDS_MAX:
        try:
            batch = Batch.parse(data, position)
        except ValueError:
            break  # It comes first in the next stretch.
        position += batch.size
        next_offset = batch.next_offset
        found = None if batch.is_control or batch.is_transactional else stored(batch)
        if found is None:
            end_run()
            steps += [run, batch]
            run = []
            continue
        count += len(found)
        for one in found:
            key = one[1]
            if key.startswith(replaced):
                latest[key] = one
            else:
                end_run()
                run.append(one)
    end_run()
    steps.append(run)
    return Folded(steps, next_offset)


def stored(batch: Batch) -> list[Stored] | None:
    """Offset, key and value of each record; None if the bytes make no sense."""
    try:
        return read_stored(batch)
    except BadRecords:
        return None


def read_stored(batch: Batch) -> list[Stored]:
    """The same; BadRecords if the bytes make no sense."""
    data = unfold(batch, DECOMPRESSED_BYTES_MAX)
    try:
        found = _stored(data, batch.base_offset, batch.count)
    except IndexError:
        found = None
    if found is None:
        # Headers are passed over: one record may have millions, and nobody needs them here.
        found = [
            (record[0], *_key_and_value(data, record[3], record[4]))
            for record in skim(batch, data)
            if not isinstance(record, int)
        ]
    return found


def _key_and_value(data: bytes, position: int, end: int) -> tuple[bytes, bytes | None]:
    key, position = read_bytes(data, position, end)
    value, _ = read_bytes(data, position, end)
    return key or b"", value


def _stored(data: bytes, base_offset: Offset, count: int) -> list[Stored] | None:
    """Of records without headers, as state has none; None if it is not as simple as that.

    Varints of one byte are unrolled: nearly all have no more.
    """
    found: list[Stored] = []
    position = 0
    for _ in range(count):
        size, position = read_varint(data, position)
        end = position + size
        position += 1  # The attributes of a record mean nothing yet.
        while data[position] >= 0x80:  # Its timestamp does not matter.
            position += 1
        delta, position = read_varint(data, position + 1)
        byte = data[position]
        if byte < 0x80:
            size, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            size, position = read_varint(data, position)
        key = data[position : position + size] if size > 0 else b""
        position += max(size, 0)
        byte = data[position]
        if byte < 0x80:
            size, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            size, position = read_varint(data, position)
        value = data[position : position + size] if size >= 0 else None
        position += max(size, 0)
        if data[position] or position + 1 != end:
            return None
        found.append((base_offset + delta, key, value))
        position = end
    return found if position == len(data) else None
