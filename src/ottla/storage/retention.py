"""Deletes the oldest segments of a log: by time, by size, and below the log's start."""

from collections.abc import Iterator, Sequence

from ottla.model.types import Offset, WallTime
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.segment import Segment
from ottla.storage.sync_work import Syncable


def delete_old_segments(log: Log, now: WallTime, high_watermark: Offset) -> Iterator[Syncable]:
    """Rename away what retention allows; `Deletion.take_due` names it when the delay is over.

    Each step is to be synced, by a worker, before the next is asked for. The log is used as ever
    meanwhile, and each segment is judged when its turn has come.
    """
    while not log.is_abandoned and _is_oldest_deletable(log, now, high_watermark):
        if len(log.segments) == 1:
            if log.staged_end > log.end_offset:
                return  # What is staged belongs into this segment: with the next round.
            log.roll(now)  # A log always has a segment to append to.
        try:
            for step in log.files.drop_oldest(now + log.config.file_delete_delay_ms):
                log.start_with_first_segment()
                yield step
        finally:
            log.start_with_first_segment()


def _is_oldest_deletable(log: Log, now: WallTime, high_watermark: Offset) -> bool:
    count = deletable(
        log.segments,
        log.config,
        now,
        log_start_offset=log.log_start_offset,
        high_watermark=high_watermark,
    )
    return count > 0


def deletable(
    segments: Sequence[Segment],
    config: LogConfig,
    now: WallTime,
    *,
    log_start_offset: Offset,
    high_watermark: Offset,
) -> int:
    """How many of the oldest segments may be deleted; never one that is not wholly replicated."""
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    for index, segment in enumerate(segments):
        is_last = index == len(segments) - 1
        next_offset = segment.next_offset if is_last else segments[index + 1].base_offset
        if high_watermark < next_offset or (is_last and segment.size == 0):
            break
        is_old = config.is_deleted and 0 <= config.retention_ms < now - age_timestamp(segment)
        is_excess = config.is_deleted and config.retention_bytes >= 0 and excess >= segment.size
        is_below_start = not is_last and next_offset <= log_start_offset
        if not (is_old or is_excess or is_below_start):
            break
        excess -= segment.size
        count += 1
    return count


def age_timestamp(segment: Segment) -> int:
    """The segment's latest timestamp; where records carry none, when it was last written."""
    timestamp = segment.latest.timestamp
    return timestamp if timestamp >= 0 else segment.modified_ms
