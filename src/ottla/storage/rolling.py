"""When a segment is full: by bytes, by age, by its index, or because offsets no longer fit it."""

from collections.abc import Sequence

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, TopicPartition, WallTime
from ottla.records.batch import PlacedBatch
from ottla.records.checksum import crc32c
from ottla.storage.config import LogConfig
from ottla.storage.segment import Segment


def must_roll(
    segment: Segment, config: LogConfig, batches: Sequence[PlacedBatch], size: int, now: WallTime
) -> bool:
    """Whether `batches`, `size` bytes in all, cannot all go into `segment`."""
    if segment.size == 0 and len(batches) == 1:
        return False  # An empty segment takes any one batch: `stage` refused the too large.
    _, _, _, last_offset, max_timestamp, _, _ = batches[-1]
    return (
        segment.size + size > config.segment_bytes
        or not segment.can_hold(last_offset, config.segment_index_bytes)
        or (segment.size > 0 and _is_due(segment, config, max_timestamp, now))
    )


def larger_than_a_segment(where: TopicPartition, size: int, config: LogConfig) -> Refusal:
    return Refusal(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Message batch size is {size} bytes in append to partition {where}, which exceeds the "
        f"maximum configured segment size of {config.segment_bytes}.",
    )


def _is_due(segment: Segment, config: LogConfig, timestamp: int, now: WallTime) -> bool:
    """`segment.ms` counts in the records' own time, and in ours where they have none."""
    first = segment.first_timestamp
    waited = timestamp - first if first >= 0 and timestamp >= 0 else now - segment.created_ms
    return waited > config.segment_ms - _jitter_ms(segment, config)


def _jitter_ms(segment: Segment, config: LogConfig) -> Millis:
    """Different for each segment, so that not all roll at once; the same whenever it is asked."""
    jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
    if jitter_ms <= 0:
        return 0
    chance: int = crc32c(segment.log_path.encode())
    return chance % jitter_ms
