"""A partition's log: segments in a row, appended at the end, read anywhere, deleted at the start.

Producers' batches are staged, and a flush writes all that were staged in one call; only then does
`end_offset` move, so that nobody reads or acknowledges what is not in the file. A failed write
takes every staged offset back. Who may write, and how far readers may see, is for `Partition`.

`existing_log` and `new_log` open one, `durability` says what has to be synced, `retention` deletes
its oldest segments, `lookup` finds records by time. Only the event loop calls a Log.
"""

import errno
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ottla.env.files import FileRange
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Offset, TopicPartition, WallTime
from ottla.records.batch import ASSIGNED, LOG_OVERHEAD_BYTES, Batch, PlacedBatch
from ottla.storage.config import LogConfig
from ottla.storage.durability import Durability
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.producer_history import complete_transaction, reload_producers
from ottla.storage.producer_state import Completed, Producers
from ottla.storage.roll_policy import Rolling, next_base_offset
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.sync_work import Syncable, sync_all
from ottla.storage.transaction_index import AbortedTransaction


class Log:
    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        files: Segments,
        epochs: LeaderEpochs,
        producers: Producers,
        *,
        is_clean: bool,
    ) -> None:
        """`is_clean` says that the files need no more than a sync to be closed."""
        self.topic_partition = topic_partition
        self.directory = files.directory
        self.disk = files.disk
        self.config = config
        self.files = files
        self.epochs = epochs
        self.producers = producers
        self.end_offset: Offset = files.active.next_offset
        self.staged_end: Offset = self.end_offset
        self.log_start_offset: Offset = files.all[0].base_offset
        self.durability = Durability(files, epochs, recovery_point=self.end_offset)
        # Of the last partition object that served this log, or of the checkpoint at the start: a
        # partition that is recreated (another role, other replicas) goes on from here.
        self.high_watermark: Offset = 0
        self._rolling = Rolling()
        self._staged: list[PlacedBatch] = []
        self._staged_bytes = 0
        self._completed: list[Completed] = []
        # The change of the files that failed, and has to be finished before the next write.
        self._unfinished: Callable[[], object] | None = None
        self._is_closed_cleanly = is_clean

    @property
    def segments(self) -> list[Segment]:
        return self.files.all

    @property
    def oldest_offset(self) -> Offset:
        """Base offset of the oldest segment that a power cut now may leave."""
        return self.files.oldest_offset

    @property
    def is_abandoned(self) -> bool:
        """Whether its files are not ours any more: another log may have their names."""
        return self.files.is_abandoned

    @property
    def size_bytes(self) -> int:
        return self.files.size_bytes

    @property
    def recovery_point(self) -> Offset:
        """Everything below it is synced."""
        return self.durability.recovery_point

    @recovery_point.setter
    def recovery_point(self, offset: Offset) -> None:
        self.durability.recovery_point = offset

    @property
    def is_unsynced(self) -> bool:
        """True if a power loss now would take something from this log."""
        return self.durability.is_behind(self.end_offset)

    def stage(self, batch: Batch, leader_epoch: int, *, is_client: bool = True) -> Offset:
        """Give the batch its offsets, and hold it for the next `flush`. Its buffer must stay.

        Raises Refusal with Kafka's code, or Duplicate for a batch that is here already.
        """
        size = batch.size
        if size > self.config.segment_bytes:
            if batch.producer_id >= 0:
                self.producers.check_new(batch)  # It may be here since segments were larger.
            raise self._larger_than_a_segment(size)
        offset = self.staged_end
        batch.base_offset = offset
        batch.leader_epoch = leader_epoch
        if batch.producer_id >= 0:
            completed = self.producers.accept(batch, is_client=is_client)
            if completed is not None:
                self._completed.append(completed)
        ASSIGNED.pack_into(batch.data, 0, offset, size - LOG_OVERHEAD_BYTES, leader_epoch)
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, offset)
        self._staged.append(batch.placed)
        self._staged_bytes += size
        self.staged_end = offset + batch.last_offset_delta + 1
        return offset

    def stage_placed(self, batches: Sequence[PlacedBatch], size: int) -> None:
        """The same for batches that have offsets and epoch, and whose producers are noted."""
        assert batches[0][2] == self.staged_end, "offsets have neither gaps nor overlaps"
        self._staged += batches
        self._staged_bytes += size
        self.staged_end = batches[-1][3] + 1

    def flush(self, now: WallTime) -> None:
        """Write everything staged with one call, and publish it; OSError, Damaged take all back."""
        staged = self._staged
        if not staged:
            return
        if self._unfinished is not None:
            self._forget_staged()  # By what was known of producers before the change is done.
            self._finish_change()
            raise OSError(errno.EINTR, "it had to be cut first", self.directory)
        active = self.files.active
        try:
            if self._completed:
                active.transactions()  # They may have to be read: before anything is written.
            if self._rolling.must_roll(active, self.config, staged, self._staged_bytes, now):
                self._write_rolling(staged, now)
            else:
                active.append(staged)
        except (OSError, Damaged):
            self._forget_staged()
            self._change(partial(self.files.cut, self.end_offset))
            raise
        if self._completed:
            self._complete_transactions()
        self.producers.keep()
        self.producers.end_offset = self.end_offset = self.staged_end
        self._staged = []
        self._staged_bytes = 0
        self._is_closed_cleanly = False

    def append(self, batches: Iterable[Batch], now: WallTime) -> None:
        """Write batches that have their offsets and epochs (replication, the metadata log)."""
        assert not self._staged, "a log is led or followed, never both at once"
        self._finish_change()
        for batch in batches:
            assert batch.base_offset >= self.staged_end, "offsets only grow"
            if batch.leader_epoch > self.epochs.latest:
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
            completed = self.producers.note(batch) if batch.producer_id >= 0 else None
            if completed is not None:
                self._completed.append(completed)
            self._staged.append(batch.placed)
            self._staged_bytes += batch.size
            self.staged_end = batch.next_offset
        self.flush(now)

    def read(
        self,
        offset: Offset,
        bytes_max: int,
        *,
        end_offset: Offset,
        at_least_one: bool = True,
    ) -> FileRange | None:
        """The batches from the one that holds `offset` on: the first whole, the last perhaps cut.

        Nothing at or past `end_offset`, which is where a batch begins. None if there is nothing,
        or if the first batch is larger than `bytes_max` and need not be given.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            raise self._out_of_range(offset)
        if offset >= end_offset:
            return None
        segment = self.files.active
        if offset >= segment.base_offset:
            return segment.read(offset, bytes_max, end_offset, at_least_one)
        return self.files.read(offset, bytes_max, end_offset, at_least_one)

    def epoch_end_offset(self, epoch: int) -> tuple[int, Offset]:
        """The greatest known epoch <= `epoch` and where it ended, as OffsetForLeaderEpoch says."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Below it every transaction is decided, and the decision is replicated."""
        unstable = self.producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def aborted_transactions(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """Those with records in [start, end): what a read-committed consumer has to skip."""
        return self.files.aborted_transactions(start, end)

    def sync(self) -> None:
        sync_all(self.durability.begin_sync(self.end_offset))
        self.durability.synced_to(self.end_offset)

    def truncate_to(self, offset: Offset) -> None:
        """Remove everything at and past `offset`, and the memory of it.

        At or past the end, that is what was staged, and no file is touched. After an OSError the
        log ends at `offset` all the same, and its files follow before anything is written.
        """
        self._forget_staged()
        if offset >= self.end_offset:
            self.epochs.truncate_from_end(offset)  # One that began there and wrote nothing.
            return
        self._finish_change()
        if offset < self.segments[0].base_offset:
            self.start_at(offset)
        else:
            self._end_at(offset)
            self._change(self._cut)

    def start_at(self, offset: Offset) -> None:
        """Empty the log; its next record gets `offset`. After an OSError as `truncate_to`."""
        self._forget_staged()
        self.epochs.clear()
        self.producers.load({}, offset)
        self.log_start_offset = offset
        self._end_at(offset)
        created_ms = self.files.active.created_ms
        self._change(partial(self.files.restart, offset, self.config, created_ms))

    def advance_log_start(self, offset: Offset) -> None:
        """Nothing below `offset` is served any more; whole segments below it go with retention."""
        if offset > self.end_offset:
            message = f"{self.topic_partition} cannot start at {offset}: it ends before"
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def start_with_first_segment(self) -> None:
        """Older segments were deleted: nothing below the first one left is served any more."""
        self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
        self.epochs.truncate_from_start(self.log_start_offset)

    def replace_segments(self, sources: Sequence[Segment], by: Segment, now: WallTime) -> bool:
        """Put a cleaned segment in their place; False if the log went on without them."""
        return self.files.replace(sources, by, now + self.config.file_delete_delay_ms)

    def roll(self, now: WallTime) -> None:
        """Seal the active segment and begin the next at the end of the log."""
        assert not self._staged, "a flush rolls by itself"
        self._finish_change()
        self._roll(self.end_offset, now, self.producers.noted)

    def close(self) -> None:
        """Write indexes and producers, sync all: a clean open then scans nothing."""
        sync_all(self.finish())
        self.finished()

    def finish(self) -> list[Syncable]:
        """The first half of `close`: what to sync, before `finished` ends it."""
        assert not self._staged, "what is staged is flushed or refused before"
        self._finish_change()
        if not self._is_closed_cleanly:
            self.files.write_active_indexes()
            self._snapshot_producers(self.end_offset, self.producers.noted)
        return self.durability.begin_sync(self.end_offset)

    def finished(self) -> None:
        self.durability.synced_to(self.end_offset)
        self._is_closed_cleanly = True
        self.abandon()

    def abandon(self) -> None:
        """Let go of all files as they are: the directory failed, or the log is deleted."""
        self._forget_staged()
        self.files.abandon()

    def _complete_transactions(self) -> None:
        for completed in self._completed:
            segment = self.files.holding(completed.last_offset)
            complete_transaction(segment, completed, self.producers)
        self._completed = []

    def _write_rolling(self, staged: Sequence[PlacedBatch], now: WallTime) -> None:
        """Write what fits, roll, write on: the snapshot at each roll must not look ahead."""
        segments = self.files
        group: list[PlacedBatch] = []
        group_bytes = 0
        noted = 0
        for batch in staged:
            _, size, *_, producer_id = batch
            group.append(batch)
            group_bytes += size
            if self._rolling.must_roll(segments.active, self.config, group, group_bytes, now):
                if len(group) > 1:
                    segments.active.append(group[:-1])
                self._roll(next_base_offset(segments.active, batch), now, noted)
                group, group_bytes = [batch], size
            noted += producer_id >= 0
        segments.active.append(group)

    def _roll(self, base_offset: Offset, now: WallTime, noted: int) -> None:
        self._snapshot_producers(base_offset, noted)
        self.files.roll(base_offset, self.config, now)

    def _snapshot_producers(self, offset: Offset, noted: int) -> None:
        if offset > self.segments[0].base_offset:
            producers = self.producers.as_of(noted)
            self.files.write_producer_snapshot(offset, producers)

    def _change(self, change: Callable[[], object]) -> None:
        """Change the files as the log has changed; if that fails, do it before the next write."""
        self._unfinished = change
        change()
        self._unfinished = None

    def _finish_change(self) -> None:
        if self._unfinished is not None:
            self._change(self._unfinished)

    def _cut(self) -> None:
        snapshots = self.files.cut(self.end_offset)
        self.files.active.next_offset = self.end_offset
        self._reload_producers(snapshots)

    def _forget_staged(self) -> None:
        """Take back what was staged: offsets, producers and epochs."""
        if not self._staged:
            return
        self._staged, self._staged_bytes, self._completed = [], 0, []
        self.staged_end = self.end_offset
        self.producers.take_back()
        self.epochs.truncate_from_end(self.end_offset)

    def _end_at(self, offset: Offset) -> None:
        self.end_offset = self.staged_end = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.durability.truncated_to(offset)
        self.epochs.truncate_from_end(offset)
        self._is_closed_cleanly = False

    def _reload_producers(self, snapshots: list[Offset]) -> None:
        """From these, none of which is past the end now, and the batches that follow."""
        reload_producers(
            self.producers,
            self.files,
            snapshots,
            log_start_offset=self.log_start_offset,
            end_offset=self.end_offset,
        )

    def _larger_than_a_segment(self, size: int) -> Refusal:
        return Refusal(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self.topic_partition}, "
            f"which exceeds the maximum configured segment size of {self.config.segment_bytes}.",
        )

    def _out_of_range(self, offset: Offset) -> Refusal:
        return Refusal(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {self.topic_partition}, but we "
            f"only have log segments from offset {self.log_start_offset} up to {self.end_offset}.",
        )
