"""Finding records by time: the time index says where to look, the records say which one.

And what is answered to an offset where there are none.
"""

from collections.abc import Sequence
from typing import Final

from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Offset, TopicPartition
from ottla.records.batch import Batch
from ottla.records.record import BadRecords, read_records
from ottla.storage.index import TimestampedOffset
from ottla.storage.segment import Segment

LOOKUP_BYTES_MAX: Final = 256 * 1024 * 1024


def find_by_timestamp(
    segments: Sequence[Segment], timestamp: int, *, start: Offset
) -> TimestampedOffset | None:
    """The first record at or past `start` that is not earlier than `timestamp`."""
    for segment in segments:
        if segment.next_offset <= start or segment.latest.timestamp < timestamp:
            continue
        offset = max(start, segment.open_indexes().times.offset_before(timestamp))
        position = segment.open_indexes().offsets.position_before(offset)
        for place, batch in segment.batches(position):
            if batch.max_timestamp < timestamp or batch.last_offset < start:
                continue
            found = _first_at(batch, timestamp, start, segment.log_path, place)
            if found is not None:
                return found
    return None


def max_timestamp(segments: Sequence[Segment]) -> TimestampedOffset | None:
    """The record with the greatest timestamp; the first of them if there are several."""
    latest_segment: Segment | None = None
    for segment in segments:
        if segment.latest.timestamp >= 0 and (
            latest_segment is None or segment.latest.timestamp > latest_segment.latest.timestamp
        ):
            latest_segment = segment
    if latest_segment is None:
        return None
    latest = latest_segment.latest
    found = latest_segment.find(latest.offset)
    if found is None:
        return latest
    for place, batch in latest_segment.batches(found[0]):
        if batch.is_log_append_time:
            return TimestampedOffset(latest.timestamp, batch.last_offset, batch.leader_epoch)
        first = _first_at(batch, latest.timestamp, 0, latest_segment.log_path, place)
        return latest if first is None else first
    return latest


def _first_at(
    batch: Batch, timestamp: int, start: Offset, path: str, position: int
) -> TimestampedOffset | None:
    try:
        for record in read_records(batch, LOOKUP_BYTES_MAX):
            if record.timestamp >= timestamp and record.offset >= start:
                return TimestampedOffset(record.timestamp, record.offset, batch.leader_epoch)
    except BadRecords as failure:
        raise Damaged(path, position, str(failure)) from failure
    return None


def out_of_range(where: TopicPartition, offset: Offset, held: range) -> Refusal:
    return Refusal(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Received request for offset {offset} for partition {where}, but we only have log "
        f"segments from offset {held.start} up to {held.stop}.",
    )
