"""The producers of a log, followed through its batches: after a crash, an open or a truncation."""

from collections.abc import Sequence

from ottla.model.errors import Damaged
from ottla.model.types import Offset
from ottla.records.batch import Batch
from ottla.records.record import BadRecords
from ottla.storage.producer_snapshot import read_newest_snapshot
from ottla.storage.producer_state import Completed, Producers
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.transaction_index import AbortedTransaction


def note_producer(segment: Segment, batch: Batch, position: int, producers: Producers) -> None:
    """Follow the producer's state and, for an abort marker, the segment's transaction index."""
    try:
        completed = producers.note(batch)
    except BadRecords as failure:
        raise Damaged(segment.log_path, position, str(failure)) from failure
    if completed is not None:
        complete_transaction(segment, completed, producers)
    producers.keep()


def complete_transaction(segment: Segment, completed: Completed, producers: Producers) -> None:
    """The marker, which lies in `segment`, is in the log; an aborted one goes into its index."""
    if completed.is_aborted:
        stable = producers.stable_offset_after(completed)
        segment.transactions().add(
            AbortedTransaction(
                completed.producer_id, completed.first_offset, completed.last_offset, stable
            )
        )
    producers.complete(completed)


def replay(producers: Producers, segment: Segment, *, start: Offset, end: Offset) -> None:
    """Follow the producers through a segment's batches from `start` up to `end`."""
    found = segment.find(start) if start > segment.base_offset else (0, 0)
    if found is None:
        return
    for position, batch in segment.batches(found[0]):
        if batch.base_offset >= end:
            break
        if batch.base_offset >= start and batch.producer_id >= 0:
            try:
                completed = producers.note(batch)
            except BadRecords as failure:
                raise Damaged(segment.log_path, position, str(failure)) from failure
            if completed is not None:
                producers.complete(completed)
            producers.keep()


def reload_producers(
    producers: Producers,
    files: Segments,
    snapshots: Sequence[Offset],
    *,
    log_start_offset: Offset,
    end_offset: Offset,
) -> None:
    """Begin with the newest of `snapshots` that is whole, and replay the batches that follow."""
    snapshot = read_newest_snapshot(files.disk, files.directory, snapshots)
    start, known = snapshot if snapshot is not None else (log_start_offset, {})
    producers.load(known, start)
    for segment in files.all[files.index_of(start) :]:
        replay(producers, segment, start=start, end=end_offset)
    producers.end_offset = end_offset
