"""One round of compaction over one log: gather its keys, then copy the records that stay.

The loop makes a `Cleaning` from a log, and a worker goes through its steps: it reads sealed files
by their paths and writes `.cleaned` ones, and never touches the log itself. Only the loop swaps a
finished segment in, if the ones it was made from are all still there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.model.errors import Damaged
from ottla.model.types import Offset, WallTime
from ottla.records.batch import Batch
from ottla.records.cleaning import CleaningRules, Verdict, clean_batch, delete_horizon, keys_of
from ottla.records.record import BadRecords
from ottla.storage.cleanable import Cleanable, grouped
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.files import CLEANED
from ottla.storage.offset_map import OffsetMap
from ottla.storage.open_files import OpenFiles
from ottla.storage.segment import Segment, scan
from ottla.storage.sync_work import PathToSync

if TYPE_CHECKING:
    from ottla.storage.log import Log

STEP_BYTES: Final = 256 * 1024  # After so much, others have their turn.
STEP_RECORDS: Final = 10_000  # A few bytes of a compressed batch may hold as many.


@dataclass(frozen=True, slots=True)
class CleaningLimits:
    """The broker's part of the rules."""

    map_bytes_max: int = 128 * 1024 * 1024
    map_load_factor: float = 0.9
    decompressed_bytes_max: int = 256 * 1024 * 1024


class Cleaning:
    def __init__(self, log: "Log", part: Cleanable, now: WallTime, limits: CleaningLimits) -> None:
        assert part.end <= log.recovery_point, "what a power cut may take is not cleaned"
        self._disk = log.disk
        self._directory = log.directory
        self._config = log.config
        self._part = part
        self._segments = [each for each in log.segments if each.base_offset < part.end]
        self._rules = CleaningRules(
            now, log.config.delete_retention_ms, limits.decompressed_bytes_max
        )
        # Each record has at most one key: more than this is never needed.
        records_max = part.end - part.first_dirty
        self.map = OffsetMap(limits.map_bytes_max, limits.map_load_factor, records_max)
        start = self._segments[0].base_offset if self._segments else part.end
        self._aborted = log.aborted_transactions(start, part.end)
        self._transactions = CleanedTransactions(self._aborted)
        self._producers = {
            producer_id: (producer.batches[-1].last_offset if producer.batches else None)
            for producer_id, producer in log.producers.by_id.items()
        }
        self._epochs = {
            producer_id: producer.epoch for producer_id, producer in log.producers.by_id.items()
        }
        self.read_bytes = 0
        self.written_bytes = 0

    def gather(self) -> Iterator[int]:
        """Note where each key was last written, until all are noted or the map is full.

        Yields how many bytes were read, every so often, so that others may have their turn.
        """
        start = self._part.first_dirty
        self.map.end_offset = start
        transactions = CleanedTransactions(
            each for each in self._aborted if each.last_offset >= start
        )
        for index, segment in enumerate(self._segments):
            following = self._following(index)
            if following <= start:
                continue
            done_bytes = done_records = 0
            for position, batch in self._batches(segment):
                if batch.last_offset < start:
                    continue
                if not self._gather_batch(segment, position, batch, transactions):
                    yield done_bytes
                    return
                self.map.end_offset = batch.next_offset
                done_bytes += batch.size
                done_records += batch.count
                if done_bytes >= STEP_BYTES or done_records >= STEP_RECORDS:
                    yield done_bytes
                    done_bytes = done_records = 0
            self.map.end_offset = following  # Earlier compactions may have left a gap.
            yield done_bytes

    def groups(self) -> list[list[Segment]]:
        """What is copied into one segment each, once the keys are gathered."""
        reached = [each for each in self._segments if each.base_offset < self.map.end_offset]
        return grouped(
            reached,
            segment_bytes=self._config.segment_bytes,
            index_bytes=self._config.segment_index_bytes,
            end=self._part.end,
        )

    def begin(self, group: list[Segment]) -> Segment:
        """A new segment, under a name that nobody takes for a log's own."""
        cleaned = Segment(
            OpenFiles(self._disk),
            self._directory,
            group[0].base_offset,
            created_ms=group[0].created_ms,
            index_interval_bytes=self._config.index_interval_bytes,
            mark=CLEANED,
        )
        file = self._disk.open(cleaned.log_path, create=True)
        if file.size:
            file.truncate(0)
        cleaned.activate(file)
        cleaned.reset()
        return cleaned

    def copy(self, group: list[Segment], cleaned: Segment) -> Iterator[int]:
        """Copy what stays, then make it durable. Yields bytes read and written."""
        self._transactions.retained.clear()
        kept: list[Batch] = []
        read_bytes = read_records = kept_bytes = 0
        for segment in group:
            for position, batch in self._batches(segment):
                read_bytes += batch.size
                read_records += batch.count
                data = self._clean(segment, position, batch)
                if data is not None:
                    kept.append(data)
                    kept_bytes += data.size
                if read_bytes >= STEP_BYTES or read_records >= STEP_RECORDS:
                    self._write(cleaned, kept)
                    yield read_bytes + kept_bytes
                    kept, read_bytes, read_records, kept_bytes = [], 0, 0, 0
        self._write(cleaned, kept)
        yield read_bytes + kept_bytes
        self._finish(cleaned)

    def _finish(self, cleaned: Segment) -> None:
        for aborted in self._transactions.retained:
            cleaned.transactions().add(aborted)
        for path in cleaned.write_indexes():
            PathToSync(self._disk, path).sync()
        assert cleaned.file is not None, "it was activated when it began"
        cleaned.file.sync()
        cleaned.file.close()
        self._disk.sync_directory(self._directory)

    def _write(self, cleaned: Segment, kept: list[Batch]) -> None:
        if kept:
            cleaned.append([batch.placed for batch in kept])
        self.written_bytes += sum(batch.size for batch in kept)

    def _gather_batch(
        self, segment: Segment, position: int, batch: Batch, transactions: CleanedTransactions
    ) -> bool:
        """False if the map is full."""
        try:
            if batch.is_control:
                transactions.is_marker_of_nothing(batch)
            elif not transactions.is_aborted(batch):
                start, offsets = self._part.first_dirty, self.map
                for offset, key in keys_of(batch, self._rules.decompressed_bytes_max):
                    if offset >= start and not offsets.put(key, offset):
                        return False
        except BadRecords as failure:
            raise Damaged(segment.log_path, position, str(failure)) from failure
        return True

    def _clean(self, segment: Segment, position: int, batch: Batch) -> Batch | None:
        try:
            data = clean_batch(batch, self.map, self._verdict(batch), self._rules)
        except BadRecords as failure:
            raise Damaged(segment.log_path, position, str(failure)) from failure
        return None if data is None else Batch(data)

    def _verdict(self, batch: Batch) -> Verdict:
        is_kept_empty = self._is_last_of_producer(batch) or batch.next_offset == self._part.end
        if not batch.is_control:
            is_aborted = self._transactions.is_aborted(batch)
            return Verdict(is_discarded=is_aborted, is_kept_empty=is_kept_empty)
        is_of_nothing = self._transactions.is_marker_of_nothing(batch)
        horizon = delete_horizon(batch)
        is_over = is_of_nothing and horizon is not None and horizon <= self._rules.now
        return Verdict(is_over, is_kept_empty, is_of_nothing)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        """Its sequence, or for a marker its epoch, is what the log remembers a producer by."""
        producer_id = batch.producer_id
        if producer_id < 0 or producer_id not in self._producers:
            return False
        last_offset = self._producers[producer_id]
        if last_offset is not None:
            return batch.last_offset == last_offset
        return batch.is_control and batch.producer_epoch == self._epochs[producer_id]

    def _following(self, index: int) -> Offset:
        following = index + 1
        return (
            self._segments[following].base_offset
            if following < len(self._segments)
            else self._part.end
        )

    def _batches(self, segment: Segment) -> Iterator[tuple[int, Batch]]:
        """Every batch, its checksum held: damage must not be copied as if it were sound."""
        file = self._disk.open(segment.log_path)
        try:
            end = 0
            for position, batch in scan(file, 0, segment.size):
                if not batch.is_valid:
                    break
                yield position, batch
                end = position + batch.size
                self.read_bytes += batch.size
            if end != segment.size:
                raise Damaged(segment.log_path, end, "no valid record batch: it is not cleaned")
        finally:
            file.close()
