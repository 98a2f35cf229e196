"""Finding records by time: the time index says where to look, the records say which one.

A search goes on in steps, since a log may change, and others are served, between two of them: the
caller does each scan before it asks for the next. Where the records of a batch cannot be read, or
too many headers promise what their records do not hold, the first offset of the batch is the
answer: a consumer that begins there misses nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.model.errors import Damaged
from ottla.model.types import Offset
from ottla.records.batch import Batch
from ottla.records.record import BadRecords
from ottla.records.record_spans import skim
from ottla.records.scan import BatchScan
from ottla.storage.index import TimestampedOffset
from ottla.storage.segment import Segment

HEADERS_PER_STEP: Final = 500
FALSE_HEADERS_MAX: Final = 8


class SearchedLog(Protocol):
    @property
    def segments(self) -> Sequence[Segment]: ...

    log_start_offset: Offset


class FirstAt(BatchScan):
    """Looks for the first record of a batch at or past an offset and a timestamp."""

    def __init__(self, batch: Batch, bytes_max: int, *, timestamp: int, start: Offset) -> None:
        super().__init__(batch, bytes_max)
        self._timestamp = timestamp
        self._start = start
        self.found: TimestampedOffset | None = None
        self.failure: BadRecords | None = None

    @property
    def first(self) -> TimestampedOffset:
        """The answer where the records do not say."""
        batch = self.batch
        first = max(batch.base_offset, self._start)
        return TimestampedOffset(batch.max_timestamp, first, batch.leader_epoch)

    def _walk(self, data: bytes) -> Iterator[int]:
        wanted, start, batch = self._timestamp, self._start, self.batch
        for record in skim(batch, data):
            if isinstance(record, int):
                yield record
                continue
            offset, timestamp, _, _, _ = record
            if timestamp >= wanted and offset >= start:
                self.found = TimestampedOffset(timestamp, offset, batch.leader_epoch)
                return

    def _failed(self, failure: BadRecords) -> None:
        self.failure = failure


class _Candidate(NamedTuple):
    path: str
    position: int
    batch: Batch
    is_hit: bool  # By its header; else the search goes on behind it in the next step.


class TimestampSearch:
    """The first record of a log that is not earlier than `timestamp`, or None: `found`."""

    def __init__(self, log: SearchedLog, timestamp: int, bytes_max: int) -> None:
        """`bytes_max` caps what one batch is unfolded to."""
        self.found: TimestampedOffset | None = None
        self._log = log
        self._timestamp = timestamp
        self._bytes_max = bytes_max

    def steps(self) -> Iterator[FirstAt | None]:
        """Scans to do, or None where others may be served; Damaged, OSError from the log."""
        start, false_headers = self._log.log_start_offset, 0
        while (candidate := self._candidate(start)) is not None:
            batch = candidate.batch
            if not candidate.is_hit:
                yield None
            else:
                scan = FirstAt(batch, self._bytes_max, timestamp=self._timestamp, start=start)
                yield scan
                _check(scan, candidate)
                if scan.found is not None or scan.failure or false_headers == FALSE_HEADERS_MAX:
                    self.found = scan.found or scan.first
                    return
                false_headers += 1
            start = max(batch.next_offset, self._log.log_start_offset)

    def _candidate(self, start: Offset) -> _Candidate | None:
        looked_at = 0
        for segment in self._log.segments:
            if segment.next_offset <= start or segment.latest.timestamp < self._timestamp:
                continue
            indexes = segment.open_indexes()
            offset = max(start, indexes.times.offset_before(self._timestamp))
            position = indexes.offsets.position_before(offset)
            for place, batch in segment.batches(position):
                if batch.last_offset < start:
                    continue
                looked_at += 1
                is_hit = batch.max_timestamp >= self._timestamp
                if is_hit or looked_at == HEADERS_PER_STEP:
                    return _Candidate(segment.log_path, place, batch, is_hit)
        return None


class MaxTimestampSearch:
    """The record with the greatest timestamp, the first of them if there are several."""

    def __init__(self, log: SearchedLog, bytes_max: int) -> None:
        self.found: TimestampedOffset | None = None
        self._log = log
        self._bytes_max = bytes_max

    def steps(self) -> Iterator[FirstAt | None]:
        """As in TimestampSearch."""
        with_time = [each for each in self._log.segments if each.latest.timestamp >= 0]
        if not with_time:
            return
        segment = max(with_time, key=lambda each: each.latest.timestamp)
        latest = self.found = segment.latest
        place = segment.find(latest.offset)
        if place is None:
            return
        for position, batch in segment.batches(place[0]):
            if batch.is_log_append_time:
                self.found = latest._replace(
                    offset=batch.last_offset, leader_epoch=batch.leader_epoch
                )
                return
            scan = FirstAt(batch, self._bytes_max, timestamp=latest.timestamp, start=0)
            yield scan
            _check(scan, _Candidate(segment.log_path, position, batch, is_hit=True))
            self.found = scan.found or latest
            return


def _check(scan: FirstAt, candidate: _Candidate) -> None:
    """Records that cannot be read are a client's doing, unless the checksum is wrong as well."""
    if scan.failure is not None and not candidate.batch.is_valid:
        raise Damaged(candidate.path, candidate.position, str(scan.failure)) from scan.failure
