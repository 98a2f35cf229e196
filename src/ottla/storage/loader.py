"""Opening a partition directory: which files count, what must be scanned, where the log ends.

After a clean stop nothing is scanned but the end of the last segment. After a crash the segments
from the recovery point on are (`recovery`). Files that a rename, a compaction or a deletion left
behind are dealt with first, as Apache Kafka does.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

from ottla.model.errors import Damaged
from ottla.model.types import Offset, WallTime
from ottla.storage.checkpoint import decode_epochs
from ottla.storage.config import LogConfig
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.files import (
    INDEXES,
    LEADER_EPOCHS,
    LOG,
    PRODUCER_SNAPSHOT,
    file_name,
    parse_file_name,
)
from ottla.storage.index import RELATIVE_OFFSET_MAX
from ottla.storage.interrupted_work import InterruptedWork
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_history import replay
from ottla.storage.producer_snapshot import read_newest_snapshot, snapshots_in
from ottla.storage.producer_state import Producers
from ottla.storage.recovery import Progress, recover
from ottla.storage.segment import Segment


@dataclass(slots=True)
class Loaded:
    """A directory as it was found, made whole. The last segment is active."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    recovered: list[Segment] = field(default_factory=list)  # Their indexes are not synced yet.
    was_cut: bool = False
    is_new: bool = False  # It has one segment, made just now.


class Loader:
    def __init__(
        self,
        open_files: OpenFiles,
        directory: str,
        config: LogConfig,
        now: WallTime,
        *,
        power_lost: bool,
        progress: Progress | None,
    ) -> None:
        self._open_files = open_files
        self._disk = open_files.disk
        self._directory = directory
        self._config = config
        self._recovery_point: Offset = 0
        self._compacted_to: Offset = 0
        self._log_start_offset: Offset = 0
        self._now = now
        self._power_lost = power_lost
        self._progress = progress
        self._names = set(open_files.disk.list(directory))  # Asked once: a start opens many logs.
        self._is_changed = False  # Names were removed: the directory has to be synced.

    def load(
        self,
        *,
        clean: bool,
        recovery_point: Offset = 0,
        log_start_offset: Offset = 0,
        compacted_to: Offset = 0,
    ) -> Loaded:
        self._recovery_point = recovery_point
        self._compacted_to = compacted_to
        self._log_start_offset = log_start_offset
        if InterruptedWork(self._disk, self._directory, self._names).finish():
            self._is_changed = True
        segments = self._list_segments()
        loaded = Loaded(segments, self._read_epochs(), Producers())
        if clean:
            self._open_end(loaded)
            self._load_producers(loaded)
        else:
            self._recover(loaded)
        self._drop_all_if_before_start(loaded)
        self._drop_stray_snapshots(loaded)
        end_offset = loaded.segments[-1].next_offset
        loaded.epochs.truncate_from_end(end_offset)
        loaded.epochs.truncate_from_start(self._log_start_offset)
        loaded.producers.end_offset = end_offset
        loaded.producers.expire(self._now, self._config.producer_id_expiration_ms)
        if self._is_changed:
            # Removed for good: what comes back after the next crash must not be believed.
            self._disk.sync_directory(self._directory)
        return loaded

    def _list_segments(self) -> list[Segment]:
        parsed = [parse_file_name(name) for name in self._names]
        present = {(entry[0], entry[1]) for entry in parsed if entry is not None and not entry[2]}
        bases = sorted(offset for offset, kind in present if kind == LOG)
        for offset, kind in sorted(present):
            if kind in INDEXES and (offset, LOG) not in present:
                self._remove(file_name(offset, kind))
        segments = [self._segment(base) for base in bases]
        for segment, following in pairwise(segments):
            segment.size = self._disk.size(segment.log_path)
            segment.next_offset = following.base_offset
        return segments

    def _segment(self, base_offset: Offset) -> Segment:
        return Segment(
            self._open_files,
            self._directory,
            base_offset,
            created_ms=self._now,
            index_interval_bytes=self._config.index_interval_bytes,
        )

    def _read_epochs(self) -> LeaderEpochs:
        if LEADER_EPOCHS not in self._names:
            return LeaderEpochs()
        path = self._path(LEADER_EPOCHS)
        return LeaderEpochs(decode_epochs(path, self._disk.read(path)))

    def _open_end(self, loaded: Loaded) -> None:
        """After a clean stop: the last segment's own index leads to its end."""
        if not loaded.segments:
            self._begin(loaded)
            return
        last = loaded.segments[-1]
        file = self._disk.open(last.log_path)
        last.size = file.size
        indexes = last.open_indexes()
        last.activate(file, indexes)
        end = indexes.offsets.last_position
        offset_max = last.base_offset + RELATIVE_OFFSET_MAX
        for position, batch in last.batches(end):
            # No checksum covers the base offset.
            if not last.next_offset <= batch.base_offset <= batch.last_offset <= offset_max:
                raise Damaged(last.log_path, position, "a record batch that nobody wrote so")
            last.next_offset = batch.next_offset
            end = position + batch.size
        if end != file.size:
            raise Damaged(last.log_path, end, "no record batch, though it was closed cleanly")

    def _recover(self, loaded: Loaded) -> None:
        segments = loaded.segments
        bases = [segment.base_offset for segment in segments]
        first = max(0, bisect_right(bases, self._recovery_point) - 1)
        if segments:
            self._replay_producers(loaded, segments[: first + 1], segments[first].base_offset)
        kept = segments[:first]
        for index, segment in enumerate(segments[first:], first):
            if kept and self._is_hole(kept[-1], segment):
                break
            segment.activate(self._disk.open(segment.log_path))
            was_cut = recover(
                segment,
                recovery_point=self._recovery_point,
                power_lost=self._power_lost,
                is_last=index == len(segments) - 1,
                epochs=loaded.epochs,
                producers=loaded.producers,
                progress=self._progress,
            )
            kept.append(segment)
            loaded.recovered.append(segment)
            if was_cut:
                loaded.was_cut = True
                break
        for segment in segments[len(kept) :]:
            self._refuse_synced(segment)
            self._remove_segment(segment)
            loaded.was_cut = True
        for segment in loaded.recovered[:-1]:
            segment.write_indexes()
            segment.seal()
        loaded.segments = kept
        if not kept:
            self._begin(loaded)
        last = loaded.segments[-1]
        end_offset = last.next_offset
        if end_offset < self._recovery_point and end_offset >= self._log_start_offset:
            raise Damaged(
                last.log_path,
                last.size,
                f"the log ends at offset {end_offset}, though all below {self._recovery_point} "
                "was synced",
            )

    def _is_hole(self, before: Segment, segment: Segment) -> bool:
        """A power cut may take a whole segment, or the end of one, and leave the next.

        What was compacted has such gaps by nature. Our cleaner stays below the recovery point,
        and whatever cleaned the log wrote down how far it came.
        """
        return (
            self._power_lost
            and before.next_offset < segment.base_offset
            and segment.base_offset > max(self._recovery_point, self._compacted_to)
        )

    def _refuse_synced(self, segment: Segment) -> None:
        if segment.base_offset < self._recovery_point:
            raise Damaged(
                segment.log_path,
                0,
                f"it follows a hole, though all below {self._recovery_point} was synced",
            )

    def _load_producers(self, loaded: Loaded) -> None:
        """Without any snapshot, a cleanly closed log is taken to have no producers, as in Kafka."""
        end_offset = loaded.segments[-1].next_offset
        if snapshots_in(self._names):
            self._replay_producers(loaded, loaded.segments, end_offset)

    def _replay_producers(self, loaded: Loaded, segments: list[Segment], end: Offset) -> None:
        """The newest snapshot at or below `end`, and the batches from there up to `end`."""
        producers = loaded.producers
        usable = [offset for offset in snapshots_in(self._names) if offset <= end]
        snapshot = read_newest_snapshot(self._disk, self._directory, usable)
        start = self._log_start_offset
        if snapshot is not None:
            start = snapshot[0]
            producers.load(snapshot[1], start)
        broken = [offset for offset in usable if snapshot is None or offset > snapshot[0]]
        self._names -= {file_name(offset, PRODUCER_SNAPSHOT) for offset in broken}
        for segment in segments:
            if segment.next_offset <= start or segment.base_offset >= end:
                continue
            replay(producers, segment, start=start, end=end)

    def _drop_all_if_before_start(self, loaded: Loaded) -> None:
        """Files went missing below a log that was told to start later: begin there, empty."""
        if loaded.segments[-1].next_offset >= self._log_start_offset:
            return
        for segment in loaded.segments:
            self._remove_segment(segment)
        loaded.epochs.clear()
        loaded.producers.load({}, self._log_start_offset)
        loaded.recovered = []
        self._begin(loaded)

    def _drop_stray_snapshots(self, loaded: Loaded) -> None:
        """Keep those at the start of a segment and the newest; none past the end of the log."""
        bases = {segment.base_offset for segment in loaded.segments}
        end_offset = loaded.segments[-1].next_offset
        snapshots = snapshots_in(self._names)
        valid = [offset for offset in snapshots if offset <= end_offset]
        for offset in snapshots:
            if offset not in valid or (offset not in bases and offset != valid[-1]):
                self._remove(file_name(offset, PRODUCER_SNAPSHOT))

    def _begin(self, loaded: Loaded) -> None:
        """An empty segment where the log starts. Whoever syncs its first record syncs its name."""
        segment = self._segment(self._log_start_offset)
        segment.activate(self._disk.open(segment.log_path, create=True))
        segment.reset()
        loaded.segments = [segment]
        loaded.is_new = True

    def _remove_segment(self, segment: Segment) -> None:
        segment.forget()
        for kind in (*INDEXES, LOG):
            name = file_name(segment.base_offset, kind)
            if name in self._names:
                self._remove(name)

    def _remove(self, name: str) -> None:
        self._disk.remove(self._path(name))
        self._names.discard(name)
        self._is_changed = True

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"
