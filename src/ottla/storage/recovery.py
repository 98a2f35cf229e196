"""What a crash left behind, made whole: one segment scanned, its tail cut, its indexes rebuilt.

A kill leaves the page cache, so that only the very end of the last write can be torn. A power cut
may lose anything that was not synced, in any order. So a bad batch is one of three things: the
torn end of what was never synced, which is cut; after a power cut, a hole in what was never
synced, which is cut with all that follows; or damage, which is neither cut nor served.
"""

from collections.abc import Callable

from ottla.env.disk import File
from ottla.model.errors import Damaged
from ottla.model.types import Offset
from ottla.records.batch import (
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    Batch,
)
from ottla.records.checksum import crc32c
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.index import RELATIVE_OFFSET_MAX
from ottla.storage.producer_history import note_producer
from ottla.storage.producer_state import Producers
from ottla.storage.segment import SCAN_BYTES, Segment, scan

Progress = Callable[[str, int, int], None]  # A path, bytes done, bytes in all.

_PROGRESS_BYTES = 64 * 1024 * 1024


def recover(
    segment: Segment,
    *,
    recovery_point: Offset,
    power_lost: bool,
    is_last: bool,
    epochs: LeaderEpochs,
    producers: Producers,
    progress: Progress | None = None,
) -> bool:
    """Scan an activated segment, note every good batch, cut what is torn. True if it was cut."""
    file = segment.file
    assert file is not None, "the loader activates what it recovers"
    end = file.size
    segment.reset()
    reported = 0
    offset_max = segment.base_offset + RELATIVE_OFFSET_MAX
    before_last: Offset = segment.base_offset
    is_misplaced = False
    for position, batch in scan(file, 0, end):
        if batch.crc != crc32c(batch.data[CRC_START:]):  # Of a memoryview: nothing is copied.
            break
        if batch.base_offset < segment.next_offset or batch.last_offset > offset_max:
            is_misplaced = before_last <= batch.base_offset < segment.next_offset
            break
        before_last = segment.next_offset
        segment.note(batch, position)
        epochs.found(batch.leader_epoch, batch.base_offset)
        if batch.producer_id >= 0:
            note_producer(segment, batch, position, producers)
        if progress is not None and segment.size - reported >= _PROGRESS_BYTES:
            reported = segment.size
            progress(segment.log_path, reported, end)
    if segment.size == end:
        return False
    _refuse_damage(segment, end, recovery_point, power_lost=power_lost, is_last=is_last)
    if is_misplaced and not power_lost:
        # It fits if the batch before it does not: the base offset of that one has changed since.
        raise Damaged(segment.log_path, segment.size, "a record batch begins before another ends")
    file.truncate(segment.size)
    # Once cut, always cut: were it still there after the next crash, new batches could be
    # followed by old ones.
    file.sync()
    return True


def _refuse_damage(
    segment: Segment, end: int, recovery_point: Offset, *, power_lost: bool, is_last: bool
) -> None:
    if segment.next_offset < recovery_point:
        raise Damaged(
            segment.log_path,
            segment.size,
            f"no valid record batch at offset {segment.next_offset}, though everything below "
            f"{recovery_point} was synced",
        )
    if power_lost:
        return
    if not is_last:
        raise Damaged(
            segment.log_path, segment.size, "no valid record batch, though a later segment exists"
        )
    file = segment.file
    assert file is not None, "it is being recovered"
    after = find_batch(file, segment.size + 1, end, segment.next_offset)
    if after is not None:
        raise Damaged(
            segment.log_path,
            segment.size,
            f"no valid record batch, though one follows at byte {after}",
        )


def find_batch(file: File, position: int, end: int, offset_min: Offset) -> int | None:
    """Where some whole batch of a plausible offset starts, at or past `position`, or None."""
    while position + HEADER_BYTES <= end:
        chunk = file.read(position, SCAN_BYTES)
        at = chunk.find(MAGIC, 16)
        while at >= 0 and at - 16 + HEADER_BYTES <= len(chunk):
            start = at - 16
            fields = HEADER.unpack_from(chunk, start)
            base_offset, length, count_delta = fields[0], fields[1], fields[6]
            size = length + LOG_OVERHEAD_BYTES
            if (
                0 <= base_offset - offset_min <= RELATIVE_OFFSET_MAX
                and HEADER_BYTES <= size <= end - position - start
                and count_delta >= 0
                and Batch(file.read(position + start, size)).is_valid
            ):
                return position + start
            at = chunk.find(MAGIC, at + 1)
        position += max(1, len(chunk) - HEADER_BYTES + 1)
    return None
