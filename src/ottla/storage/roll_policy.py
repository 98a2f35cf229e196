"""When a segment is full: by bytes, by age, by its index, or because offsets no longer fit it."""

from collections.abc import Sequence

from ottla.model.types import Millis, Offset, WallTime
from ottla.records.batch import PlacedBatch
from ottla.records.checksum import crc32c
from ottla.storage.config import LogConfig
from ottla.storage.index import RELATIVE_OFFSET_MAX
from ottla.storage.segment import Segment


class Rolling:
    """Asks once how far a segment may grow, and again when it has, or is another one."""

    __slots__ = ("_config", "_offset_max", "_segment", "_size", "_size_max", "_timestamp_max")

    def __init__(self) -> None:
        self._segment: Segment | None = None
        self._config: LogConfig | None = None
        self._size = self._size_max = 0
        self._offset_max: Offset = 0
        self._timestamp_max = -1

    def must_roll(
        self,
        segment: Segment,
        config: LogConfig,
        batches: Sequence[PlacedBatch],
        size: int,
        now: WallTime,
    ) -> bool:
        """Whether `batches`, `size` bytes in all, cannot all go into `segment`."""
        last = batches[-1]
        if (
            segment is self._segment
            and config is self._config
            and self._size <= segment.size <= self._size_max - size  # Smaller: it was cut since.
            and last[3] <= self._offset_max
            and 0 <= last[4] <= self._timestamp_max
        ):
            self._size = segment.size
            return False
        if _must_roll(segment, config, batches, size, now):
            return True
        self._look(segment, config)
        return False

    def _look(self, segment: Segment, config: LogConfig) -> None:
        first = segment.first_timestamp
        if first < 0:
            self._segment = None  # Empty, or its records have no time: then ours counts.
            return
        self._segment, self._config, self._size = segment, config, segment.size
        # Each entry of an index needs more than an interval of bytes.
        entries = segment.index_entries_left(config.segment_index_bytes)
        indexed_max = segment.size + max(entries - 1, 0) * segment.index_interval_bytes
        self._size_max = min(config.segment_bytes, indexed_max)
        self._offset_max = segment.base_offset + RELATIVE_OFFSET_MAX
        self._timestamp_max = first + config.segment_ms - _jitter_ms(segment, config)


def _must_roll(
    segment: Segment, config: LogConfig, batches: Sequence[PlacedBatch], size: int, now: WallTime
) -> bool:
    _, _, _, last_offset, max_timestamp, _, _ = batches[-1]
    if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return True  # It would not fit four bytes: compaction may have left a wide gap before it.
    if segment.size == 0 and len(batches) == 1:
        return False  # An empty segment takes any one batch: `stage` refused the too large.
    return (
        segment.size + size > config.segment_bytes
        or segment.index_entries_left(config.segment_index_bytes) < 1
        or (segment.size > 0 and _is_due(segment, config, max_timestamp, now))
    )


def next_base_offset(segment: Segment, batch: PlacedBatch) -> Offset:
    """Base offset of the segment that follows `segment` and takes `batch`.

    The end of the log, so that a gap between two segments shows that one was lost; the offset of
    the batch, as in Kafka, where the batch is too far from the end of the log for that.
    """
    _, _, base_offset, last_offset, _, _, _ = batch
    fits = last_offset - segment.next_offset <= RELATIVE_OFFSET_MAX
    return segment.next_offset if fits else base_offset


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
