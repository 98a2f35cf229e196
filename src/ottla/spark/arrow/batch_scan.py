"""The batches of a fetch: the complete ones, the visible ones, and the next offset.

A broker sends batches as stored: the first may start below the requested offset, the last may be
incomplete, and control batches and aborted transactions are among them. Only headers are read here.
"""

from typing import NamedTuple

from ottla.client.unpacking import Transactions
from ottla.model.types import Offset
from ottla.records.batch import HEADER_BYTES, MAGIC, Batch, Buffer, walk_batches
from ottla.spark.errors import Unreadable


class Placed(NamedTuple):
    """A batch, and the position of its records (after the header) in the buffer."""

    position: int
    batch: Batch


class Scanned(NamedTuple):
    placed: list[Placed]  # Batches to decode,
    size_bytes: int  # total size of all complete batches,
    next_offset: Offset  # and the offset after them.


def scan(
    place: str, data: Buffer, offset: Offset, end: Offset, transactions: Transactions | None
) -> Scanned:
    """Complete batches with offsets from `offset` up to before `end`; `place` names the
    partition.
    """
    placed: list[Placed] = []
    position = 0
    next_offset = offset
    for batch in walk_batches(data):
        if batch.magic != MAGIC:
            raise Unreadable(f"{place} holds a batch of format {batch.magic}; only 2 can be read")
        start, position = position + HEADER_BYTES, position + batch.size
        if batch.next_offset <= offset:
            continue
        if not batch.is_valid:
            raise Unreadable(
                f"{place} holds a batch at offset {batch.base_offset} whose checksum does not match"
            )
        is_hidden = transactions is not None and transactions.is_aborted(batch)
        if not (is_hidden or batch.is_control) and batch.base_offset < end and batch.count:
            placed.append(Placed(start, batch))
        next_offset = batch.next_offset
    return Scanned(placed, position, next_offset)
