"""Reads whole batches and records of the metadata log; checks that fetched batches continue it."""

from collections.abc import Iterator
from typing import Final

from ottla.metadata.image.batches import batches_in, read_metadata
from ottla.model.errors import Damaged
from ottla.model.types import Offset
from ottla.protocol.metadata_records import MetadataRecord
from ottla.quorum.log_view import LogView
from ottla.records.batch import Batch
from ottla.storage.log import Log

READ_BYTES: Final = 4 * 1024 * 1024

Numbered = tuple[Offset, MetadataRecord]


def read_batches(log: Log, offset: Offset, bytes_max: int) -> bytes:
    """Whole batches, starting with the one that contains `offset`; at least one."""
    found = log.read(offset, bytes_max, end_offset=log.end_offset)
    assert found is not None, "only existing offsets are read"
    data = found.read()
    return data[: _whole(data)]


def batches_between(log: Log, start: Offset, end: Offset) -> Iterator[tuple[str, int, Batch]]:
    """Path, position and batch of each batch; `start` and `end` are at batch boundaries."""
    offset = start
    while offset < end:
        found = log.read(offset, READ_BYTES, end_offset=end)
        assert found is not None, "the log reaches its end offset"
        data, path = found.read(), found.file.path
        for position, batch in batches_in(data[: _whole(data)], path, found.position):
            if batch.last_offset >= offset:
                yield path, position, batch
                offset = batch.next_offset


def records_between(log: Log, start: Offset, end: Offset) -> Iterator[Numbered]:
    """Every metadata record with its offset; `start` and `end` are at batch boundaries."""
    for path, position, batch in batches_between(log, start, end):
        if not batch.is_control:
            yield from read_metadata(batch, path, position)


def next_batches(log: LogView, data: bytes) -> Iterator[Batch]:
    """Batches that the leader sent, one at a time; Damaged if one does not continue the log.

    The caller appends each before it takes the next.
    """
    for position, batch in batches_in(data, "what the leader sent"):
        end, epoch = log.end_offset, log.last_epoch
        if batch.base_offset != end or batch.leader_epoch < epoch:
            what = f"offset {batch.base_offset} of epoch {batch.leader_epoch} cannot follow"
            raise Damaged("what the leader sent", position, f"{what} {end} of {epoch}")
        yield batch


def _whole(data: bytes) -> int:
    """Position at which the last whole batch ends. Recovery has checked every batch."""
    end = 0
    while end + 12 <= len(data):
        size = int.from_bytes(data[end + 8 : end + 12]) + 12
        if end + size > len(data):
            break
        end += size
    return end
