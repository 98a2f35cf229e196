"""How dirty a compacted log is, and which part of it may be cleaned now. Pure.

Never the active segment, nothing that is not stable, nothing younger than `min.compaction.lag.ms`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.model.types import Offset, WallTime
from ottla.storage.index import RELATIVE_OFFSET_MAX
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log


@dataclass(frozen=True, slots=True)
class Cleanable:
    """What a round of cleaning would do: keys are gathered from `first_dirty` up to `end`."""

    first_dirty: Offset
    end: Offset
    clean_bytes: int
    dirty_bytes: int
    is_due: bool  # `max.compaction.lag.ms` is over for some of it.

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth_it(self, ratio_min: float) -> bool:
        return self.dirty_bytes > 0 and (self.is_due or self.ratio > ratio_min)


def first_dirty(log: "Log", cleaned_to: Offset | None) -> Offset:
    """Where the last round ended; a checkpoint that lies outside the log counts for nothing."""
    if cleaned_to is None or not log.log_start_offset <= cleaned_to <= log.end_offset:
        return log.log_start_offset
    return cleaned_to


def cleanable(
    log: "Log", cleaned_to: Offset | None, last_stable_offset: Offset, now: WallTime
) -> Cleanable:
    start = first_dirty(log, cleaned_to)
    segments = log.segments
    bases = [segment.base_offset for segment in segments]
    stable = min(last_stable_offset, log.segments[-1].base_offset)
    end = bases[max(0, bisect_right(bases, stable) - 1)]
    first = max(0, bisect_right(bases, start) - 1)
    young_ms = now - log.config.compaction_lag_ms_min
    dirty_bytes = clean_bytes = 0
    earliest: int | None = None
    for index, segment in enumerate(segments):
        if segment.base_offset >= end:
            break
        if index < first:
            clean_bytes += segment.size
            continue
        if log.config.compaction_lag_ms_min > 0 and segment.latest.timestamp > young_ms:
            end = segment.base_offset
            break
        dirty_bytes += segment.size
        if segment.first_timestamp > 0:
            earliest = min(earliest or segment.first_timestamp, segment.first_timestamp)
    is_due = earliest is not None and earliest < now - log.config.compaction_lag_ms_max
    return Cleanable(start, max(start, end), clean_bytes, dirty_bytes, is_due)


def grouped(
    segments: Sequence[Segment], *, segment_bytes: int, index_bytes: int, end: Offset
) -> list[list[Segment]]:
    """Neighbours that fit into one segment even if all of their records stay."""
    groups: list[list[Segment]] = []
    log_bytes = entries_bytes = 0
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else end
        estimate = _index_bytes(segment)
        fits = (
            groups
            and log_bytes + segment.size <= segment_bytes
            and entries_bytes + estimate <= index_bytes
            and (
                segment.size == 0
                or following - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
            )
        )
        if fits:
            groups[-1].append(segment)
            log_bytes += segment.size
            entries_bytes += estimate
        else:
            groups.append([segment])
            log_bytes, entries_bytes = segment.size, estimate
    return groups


def _index_bytes(segment: Segment) -> int:
    """At most so much in either index: an entry of the time index is the larger one."""
    return (segment.size // max(1, segment.index_interval_bytes) + 1) * 12
