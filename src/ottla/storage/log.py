"""A partition's log: segments in a row, appended at the end, read anywhere, deleted at the start.

Producers' batches are staged, and a flush writes all that were staged in one call; only then does
`end_offset` move, so that nobody reads or acknowledges what is not in the file. A failed write
takes every staged offset back. Who may write, and how far readers may see, is for `Partition`.

Only the event loop calls a Log; workers get what `unsynced_files` returns.
"""

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ottla.env.disk import Disk
from ottla.env.files import FileRange
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Offset, TopicPartition, WallTime
from ottla.records.batch import ASSIGNED, LOG_OVERHEAD_BYTES, Batch, PlacedBatch
from ottla.storage import lookup
from ottla.storage.config import LogConfig
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.files import LEADER_EPOCHS
from ottla.storage.loading import Loaded, Loader, replay
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_snapshot import (
    read_newest_snapshot,
    write_snapshot,
)
from ottla.storage.producer_state import Completed, Producers
from ottla.storage.recovery import Progress, complete_transaction
from ottla.storage.retention import deletable
from ottla.storage.rolling import Rolling, larger_than_a_segment, next_base_offset
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.syncing import EpochsToWrite, Syncable, sync_all
from ottla.storage.transaction_index import AbortedTransaction


class Log:
    def __init__(
        self,
        open_files: OpenFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: Loaded,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.config = config
        self._rolling = Rolling()
        self.epochs: LeaderEpochs = loaded.epochs
        self.producers: Producers = loaded.producers
        self._segments = Segments(open_files, directory, loaded.segments)
        self.end_offset: Offset = self._segments.active.next_offset
        self.staged_end: Offset = self.end_offset
        self.log_start_offset: Offset = loaded.segments[0].base_offset
        self.recovery_point: Offset = self.end_offset
        # Of the last partition object that served this log, or of the checkpoint at the start: a
        # partition that is recreated (another role, other replicas) goes on from here.
        self.high_watermark: Offset = 0
        self.disk: Disk = open_files.disk
        self._staged: list[PlacedBatch] = []
        self._staged_bytes = 0
        self._completed: list[Completed] = []
        # What has to be done with the files before they fit what is known here: it failed once.
        self._unfinished: Callable[[], object] | None = None
        self._is_closed_cleanly = loaded.is_new  # Nothing to do at close: the files say it all.
        self._syncing_end: Offset = 0  # What the sync under way can vouch for.
        self._segments.sync_loaded(loaded.recovered, is_new=loaded.is_new)

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        recovery_point: Offset = 0,
        log_start_offset: Offset = 0,
        compacted_to: Offset = 0,
        clean: bool,
        now: WallTime,
        progress: Progress | None = None,
        power_lost: bool = False,
        open_files: OpenFiles | None = None,
    ) -> "Log":
        """Open a partition directory, or an empty one; Damaged if it holds what nobody wrote.

        `power_lost` says that the machine restarted since: then what was not synced may be gone
        in any order, and a hole past the recovery point is no damage. Below `compacted_to` gaps
        between segments are no holes.
        """
        files = open_files if open_files is not None else OpenFiles(disk)
        loader = Loader(files, directory, config, now, power_lost=power_lost, progress=progress)
        starts = {"recovery_point": recovery_point, "log_start_offset": log_start_offset}
        loaded = loader.load(clean=clean, compacted_to=compacted_to, **starts)
        log = cls(files, directory, topic_partition, config, loaded)
        log.log_start_offset = max(log.log_start_offset, log_start_offset)
        if not clean:
            log.recovery_point = min(recovery_point, log.end_offset)
        log._is_closed_cleanly = clean
        return log

    @property
    def segments(self) -> list[Segment]:
        return self._segments.all

    @property
    def oldest_offset(self) -> Offset:
        """Base offset of the oldest segment that a power cut now may leave."""
        return self._segments.oldest_offset

    @property
    def is_abandoned(self) -> bool:
        """Whether its files are not ours any more: another log may have their names."""
        return self._segments.is_abandoned

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    def stage(self, batch: Batch, leader_epoch: int, *, is_client: bool = True) -> Offset:
        """Give the batch its offsets, and hold it for the next `flush`. Its buffer must stay.

        Raises Refusal with Kafka's code, or Duplicate for a batch that is here already.
        """
        size = batch.size
        if size > self.config.segment_bytes:
            raise larger_than_a_segment(self.topic_partition, size, self.config)
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
        """The same for batches without a producer id that have offsets and epoch."""
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
        active = self._segments.active
        try:
            if self._completed:
                active.transactions()  # They may have to be read: before anything is written.
            if self._rolling.must_roll(active, self.config, staged, self._staged_bytes, now):
                self._write_rolling(staged, now)
            else:
                active.append(staged)
        except (OSError, Damaged):
            self._forget_staged()
            self._change(partial(self._segments.cut, self.end_offset))
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
            held = range(self.log_start_offset, self.end_offset)
            raise lookup.out_of_range(self.topic_partition, offset, held)
        if offset >= end_offset:
            return None
        segment = self._segments.active
        if offset >= segment.base_offset:
            return segment.read(offset, bytes_max, end_offset, at_least_one)
        return self._segments.read(offset, bytes_max, end_offset, at_least_one)

    def epoch_end_offset(self, epoch: int) -> tuple[int, Offset]:
        """The greatest known epoch <= `epoch` and where it ended, as OffsetForLeaderEpoch says."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Below it every transaction is decided, and the decision is replicated."""
        unstable = self.producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def aborted_transactions(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """Those with records in [start, end): what a read-committed consumer has to skip."""
        return self._segments.aborted_transactions(start, end)

    def unsynced_files(self) -> list[Syncable]:
        """What must be synced so that everything below the present `end_offset` survives power.

        Note `end_offset` first; when all are synced, call `synced_to` with it.
        """
        work, self._segments.unsynced = self._segments.unsynced, []
        if self.epochs.is_dirty:
            path = f"{self.directory}/{LEADER_EPOCHS}"
            work.append(EpochsToWrite(self.disk, path, self.epochs.entries()))
            self.epochs.is_dirty = False
        self._syncing_end = self.end_offset
        file = self._segments.active.file
        if self.recovery_point < self.end_offset and file is not None:
            work.append(file)
        return work

    def sync_also(self, work: Iterable[Syncable]) -> None:
        """Have the next round sync these too: what the log's own files depend on."""
        self._segments.unsynced += work

    @property
    def is_unsynced(self) -> bool:
        """Whether a power cut now would take something from this log."""
        is_behind = self.recovery_point < self.end_offset or self.epochs.is_dirty
        return is_behind or bool(self._segments.unsynced)

    def synced_to(self, offset: Offset) -> None:
        self.recovery_point = max(self.recovery_point, min(offset, self._syncing_end))
        self.first_name_synced()

    def first_name_to_sync(self) -> Syncable | None:
        """None if the name of the first segment is durable; else call `first_name_synced` then.

        Else the first roll syncs it, on the loop.
        """
        is_durable = self._segments.is_first_name_durable
        return None if is_durable else self._segments.directory_to_sync()

    def first_name_synced(self) -> None:
        self._segments.is_first_name_durable = True

    def sync(self) -> None:
        sync_all(self.unsynced_files())
        self.synced_to(self.end_offset)

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
        created_ms = self._segments.active.created_ms
        self._change(partial(self._segments.restart, offset, self.config, created_ms))

    def advance_log_start(self, offset: Offset) -> None:
        """Nothing below `offset` is served any more; whole segments below it go with retention."""
        if offset > self.end_offset:
            message = f"{self.topic_partition} cannot start at {offset}: it ends before"
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def delete_old_segments(self, now: WallTime, high_watermark: Offset) -> Iterator[Syncable]:
        """Rename away what retention allows; `take_deleted` names it when the delay is over.

        Each step is to be synced, by a worker, before the next is asked for. The log is used as
        ever meanwhile, and each segment is judged when its turn has come.
        """
        while self._is_oldest_deletable(now, high_watermark):
            if len(self.segments) == 1:
                if self._staged:
                    return  # What is staged belongs into this segment: with the next round.
                self.roll(now)  # A log always has a segment to append to.
            try:
                for step in self._segments.drop_oldest(now + self.config.file_delete_delay_ms):
                    self._start_with_first_segment()
                    yield step
            finally:
                self._start_with_first_segment()

    def _start_with_first_segment(self) -> None:
        self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
        self.epochs.truncate_from_start(self.log_start_offset)

    def _is_oldest_deletable(self, now: WallTime, high_watermark: Offset) -> bool:
        if self.is_abandoned:
            return False
        count = deletable(
            self.segments,
            self.config,
            now,
            log_start_offset=self.log_start_offset,
            high_watermark=high_watermark,
        )
        return count > 0

    def replace_segments(self, sources: Sequence[Segment], by: Segment, now: WallTime) -> bool:
        """Put a cleaned segment in their place; False if the log went on without them."""
        return self._segments.replace(sources, by, now + self.config.file_delete_delay_ms)

    def take_deleted(self, now: WallTime) -> list[str]:
        """Paths of files whose deletion is due, for `remove_paths` in a worker."""
        return self._segments.deletion.take_due(now)

    def expire_producers(self, now: WallTime) -> None:
        self.producers.expire(now, self.config.producer_id_expiration_ms)

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
            self._segments.write_active_indexes()
            self._snapshot_producers(self.end_offset, self.producers.noted)
        return self.unsynced_files()

    def finished(self) -> None:
        self.synced_to(self.end_offset)
        self._is_closed_cleanly = True
        self.abandon()

    def abandon(self) -> None:
        """Let go of all files as they are: the directory failed, or the log is deleted."""
        self._forget_staged()
        self._segments.abandon()

    def _complete_transactions(self) -> None:
        for completed in self._completed:
            segment = self._segments.holding(completed.last_offset)
            complete_transaction(segment, completed, self.producers)
        self._completed = []

    def _write_rolling(self, staged: Sequence[PlacedBatch], now: WallTime) -> None:
        """Write what fits, roll, write on: the snapshot at each roll must not look ahead."""
        segments = self._segments
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
        self._segments.roll(base_offset, self.config, now)

    def _snapshot_producers(self, offset: Offset, noted: int) -> None:
        if offset > self.segments[0].base_offset:
            producers = self.producers.as_of(noted)
            path = write_snapshot(self.disk, self.directory, offset, producers)
            self._segments.sync_later(path)

    def _change(self, change: Callable[[], object]) -> None:
        """Change the files as the log has changed; if that fails, do it before the next write."""
        self._unfinished = change
        change()
        self._unfinished = None

    def _finish_change(self) -> None:
        if self._unfinished is not None:
            self._change(self._unfinished)

    def _cut(self) -> None:
        snapshots = self._segments.cut(self.end_offset)
        self._segments.active.next_offset = self.end_offset
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
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self._syncing_end = min(self._syncing_end, offset)
        self.epochs.truncate_from_end(offset)
        self._is_closed_cleanly = False

    def _reload_producers(self, snapshots: list[Offset]) -> None:
        """From these, none of which is past the end now, and the batches that follow."""
        snapshot = read_newest_snapshot(self.disk, self.directory, snapshots)
        start, producers = snapshot if snapshot is not None else (self.log_start_offset, {})
        self.producers.load(producers, start)
        for segment in self.segments[self._segments.index_of(start) :]:
            replay(self.producers, segment, start=start, end=self.end_offset)
        self.producers.end_offset = self.end_offset
