"""Reads part of a log whose records replace each other, and keeps only the last of each key.

State logs repeat the same keys: deduplicating raw bytes costs a tenth of decoding every record.
Records that replace nothing keep their position, and no record moves past them; transactional and
unreadable batches are returned unchanged.
"""

from typing import NamedTuple

from ottla.model.types import Offset
from ottla.records.batch import Batch, walk_batches
from ottla.records.record import BadRecords, decompress_body, read_bytes, read_varint
from ottla.records.record_spans import skim

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
RECORDS_MAX = 100_000  # Later batches are left for the next call.

Stored = tuple[Offset, bytes, bytes | None]  # A raw record: offset, key, value.


class Folded(NamedTuple):
    steps: list[list[Stored] | Batch]
    next_offset: Offset | None  # None: there is no whole batch.


def fold(data: bytes, replaced: tuple[bytes, ...]) -> Folded:
    """Fold `data`: a record is replaced by a later one with an equal key.

    Only keys that start with one of `replaced` are folded. An incomplete last batch is left out,
    and so are batches beyond RECORDS_MAX: a few bytes of a compressed batch may hold a million
    records.
    """
    steps: list[list[Stored] | Batch] = []
    run: list[Stored] = []
    latest: dict[bytes, Stored] = {}

    def end_run() -> None:
        run.extend(sorted(latest.values()))
        latest.clear()

    next_offset: Offset | None = None
    count = 0
    for batch in walk_batches(data):  # The next call starts with a truncated one.
        if count >= RECORDS_MAX:
            break
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
    """Offset, key and value of each record; None if the batch is malformed."""
    try:
        return read_stored(batch)
    except BadRecords:
        return None


def read_stored(batch: Batch) -> list[Stored]:
    """The same; raises BadRecords if the batch is malformed."""
    data = decompress_body(batch, DECOMPRESSED_BYTES_MAX)
    try:
        found = _stored(data, batch.base_offset, batch.count)
    except IndexError:
        found = None
    if found is None:
        # Headers are skipped, not kept: one record may have millions.
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
    """Fast path for records without headers, as state records are; None for any other.

    One-byte varints, the usual case, are decoded inline.
    """
    found: list[Stored] = []
    position = 0
    for _ in range(count):
        size, position = read_varint(data, position)
        end = position + size
        position += 1  # Record attributes are unused.
        while data[position] >= 0x80:  # Skip the timestamp delta.
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
