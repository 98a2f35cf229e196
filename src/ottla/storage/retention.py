"""Which segments are old enough to go: by time, by size, and below the log's start. Pure."""

from collections.abc import Sequence

from ottla.model.types import Offset, WallTime
from ottla.storage.config import LogConfig
from ottla.storage.segment import Segment


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
