"""The segments of one log, in order: the last is active, and all others are sealed.

Whole segments come and go here; which offsets and producers that means is `Log`'s affair.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from ottla.env.disk import Disk
from ottla.env.files import FileRange
from ottla.model.types import Millis, Offset
from ottla.storage.config import LogConfig
from ottla.storage.deletion import Deletion
from ottla.storage.files import INDEXES
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_snapshot import write_snapshot
from ottla.storage.producer_state import Producer
from ottla.storage.segment import Segment
from ottla.storage.segment_swap import discard, swap_in
from ottla.storage.sync_work import DirectoryToSync, PathToSync, Syncable
from ottla.storage.transaction_index import AbortedTransaction

DUE_AT_ONCE: Final = 0


class Segments:
    def __init__(self, open_files: OpenFiles, directory: str, segments: list[Segment]) -> None:
        self.all = segments
        self.active = segments[-1]
        self.unsynced: list[Syncable] = []  # What the next round of syncing has to include.
        self.deletion = Deletion(open_files.disk, directory)
        # Where the log begins is known by the name of its first segment alone, so this must not
        # be lost while a later one stays.
        self.is_first_name_durable = True
        self.oldest_offset: Offset = segments[0].base_offset  # That a power cut may leave.
        self.is_abandoned = False
        self._is_cutting = False  # A cut has begun; after an OSError it is to be called again.
        self._open_files = open_files
        self.disk: Disk = open_files.disk
        self.directory = directory

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    def index_of(self, offset: Offset) -> int:
        """Which segment would hold `offset`: the last that does not begin after it."""
        return max(0, bisect_right(self.all, offset, key=_base_offset) - 1)

    def holding(self, offset: Offset) -> Segment:
        return self.all[self.index_of(offset)]

    def read(
        self, offset: Offset, bytes_max: int, end_offset: Offset, at_least_one: bool
    ) -> FileRange | None:
        """As `Log.read`, wherever `offset` is."""
        for segment in self.all[self.index_of(offset) :]:
            if segment.base_offset >= end_offset:
                return None
            found = segment.read(offset, bytes_max, end_offset, at_least_one)
            if found is not None:
                return found
            if segment.find(offset) is not None:
                return None  # There is a batch, but it does not fit or may not be seen yet.
            # Compaction left this segment without any batch as late as `offset`.
        return None

    def aborted_transactions(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        found: list[AbortedTransaction] = []
        for segment in self.all[self.index_of(start) :]:
            if segment.transactions().collect(start, end, found):
                break
        return found

    def sync_loaded(self, recovered: list[Segment], *, is_new: bool) -> None:
        """A recovery rewrote indexes, and perhaps read what never reached the disk."""
        for segment in recovered:
            for path in (segment.log_path, *map(segment.path, INDEXES)):
                self.sync_later(path)
        if recovered or is_new:
            self.is_first_name_durable = False
            self.sync_directory_later()

    def directory_to_sync(self) -> DirectoryToSync:
        return DirectoryToSync(self.disk, self.directory)

    def sync_directory_later(self) -> None:
        self.unsynced.append(self.directory_to_sync())

    def sync_later(self, path: str) -> None:
        self.unsynced.append(PathToSync(self.disk, path))

    def write_producer_snapshot(self, offset: Offset, producers: dict[int, Producer]) -> None:
        self.sync_later(write_snapshot(self.disk, self.directory, offset, producers))

    def write_active_indexes(self) -> None:
        for path in self.active.write_indexes():
            self.sync_later(path)
        self.sync_directory_later()

    def roll(self, base_offset: Offset, config: LogConfig, now: Millis) -> None:
        """Seal the active segment, begin the next at `base_offset`; an OSError changes nothing."""
        sealed = self.active
        if not self.is_first_name_durable:
            self.disk.sync_directory(self.directory)
            self.is_first_name_durable = True
        written = sealed.write_indexes()
        segment = self._create(base_offset, config, now)
        for path in written:
            self.sync_later(path)
        assert sealed.file is not None, "the active segment has its file"
        self.unsynced.append(sealed.file)
        self.sync_directory_later()
        sealed.seal()
        self.all.append(segment)
        self.active = segment

    def cut(self, offset: Offset) -> list[Offset]:
        """Remove what lies at or past `offset`; the segment that then is last becomes active.

        Returns the offsets of the producer snapshots that are left. After an OSError some of it may
        be done: the same call again does the rest, and nothing may be written before it has.
        """
        is_resumed, self._is_cutting = self._is_cutting, True
        last = max(0, bisect_left(self.all, offset, key=_base_offset) - 1)
        is_shorter = last < len(self.all) - 1
        if is_shorter:
            active = self._reopened(self.all[last])  # It may fail: first, while all is as it was.
            for segment in reversed(self.all[last + 1 :]):
                self._rename_away(segment, DUE_AT_ONCE)
            self.all[last:] = [active]
            self.active = active
        snapshots, is_any_gone = self.deletion.rename_snapshots_past(offset)
        if is_any_gone or is_shorter or is_resumed:
            # Their producer snapshots must not come back beside what is written here next.
            self.disk.sync_directory(self.directory)
        if self.active.next_offset > offset:
            self.active.truncate_to(offset)
        file = self.active.file
        assert file is not None, "the active segment has its file"
        if file.size > self.active.size:
            file.truncate(self.active.size)  # Part of a write that failed.
        self._is_cutting = False
        return snapshots

    def restart(self, offset: Offset, config: LogConfig, now: Millis) -> None:
        """Remove all, and begin one at `offset`; after an OSError as `cut`."""
        for segment in reversed(self.all):
            self._rename_away(segment, DUE_AT_ONCE)
        self.deletion.rename_snapshots_past(-1)
        self.active = self._create(offset, config, now)
        self.all[:] = [self.active]
        self.disk.sync_directory(self.directory)
        self.oldest_offset = offset
        self._is_cutting = False

    def drop_oldest(self, due_ms: Millis) -> Iterator[Syncable]:
        """Rename the oldest away; it is removed at `due_ms`.

        The directory is to be synced at each step. First the name of what will be the oldest has
        to be durable. Then one goes after the other: a power cut must not bring back an older one
        without a younger one. Between the steps the log may change, and then this ends.
        """
        oldest, next_oldest = self.all[:2]
        yield self.directory_to_sync()
        if self.all[:2] == [oldest, next_oldest] and not self.is_abandoned:
            try:
                self._rename_away(oldest, due_ms)
            finally:
                if not self.disk.exists(oldest.log_path):  # Its indexes alone may be left.
                    del self.all[0]
            yield self.directory_to_sync()
            # Not beyond the first segment: the log may have begun elsewhere meanwhile.
            durable = min(next_oldest.base_offset, self.all[0].base_offset)
            self.oldest_offset = max(self.oldest_offset, durable)

    def replace(self, sources: Sequence[Segment], cleaned: Segment, due_ms: Millis) -> bool:
        """Put a cleaned segment in the place of its sources; False if they are not all here."""
        first = self.index_of(sources[0].base_offset)
        end = first + len(sources)
        if self.all[first:end] != list(sources) or self.active in sources:
            discard(self.disk, cleaned)
            return False
        swap_in(self.disk, cleaned, sources, self.deletion, due_ms)
        self.sync_directory_later()
        segment = Segment(
            self._open_files,
            self.directory,
            cleaned.base_offset,
            created_ms=cleaned.created_ms,
            index_interval_bytes=cleaned.index_interval_bytes,
        )
        segment.size = cleaned.size
        segment.next_offset = self.all[end].base_offset
        self.all[first:end] = [segment]
        return True

    def _rename_away(self, segment: Segment, due_ms: Millis) -> None:
        """Do not keep its file open for a sync of what is gone: that it is gone is synced instead.

        Else a recovery point could pass records that come back with the old name, but torn.
        """
        self.deletion.rename_away(segment, due_ms)
        kept = [each for each in self.unsynced if getattr(each, "path", "") != segment.log_path]
        if len(kept) < len(self.unsynced):
            self.unsynced = [*kept, self.directory_to_sync()]

    def abandon(self) -> None:
        self.is_abandoned = True
        self.unsynced = []
        for segment in self.all:
            segment.forget()

    def _create(self, base_offset: Offset, config: LogConfig, now: Millis) -> Segment:
        segment = Segment(
            self._open_files,
            self.directory,
            base_offset,
            created_ms=now,
            index_interval_bytes=config.index_interval_bytes,
        )
        file = self._open_files.reopen(segment.log_path, create=True)
        if file.size:
            file.truncate(0)  # A segment that was begun and taken back.
        segment.activate(file)
        segment.reset()
        return segment

    def _reopened(self, sealed: Segment) -> Segment:
        """A sealed segment that becomes the active one again.

        As another object: a cleaned copy of the sealed one must not replace what is written now.
        Over the same file: who still reads it has to hear that it is truncated.
        """
        segment = Segment(
            self._open_files,
            self.directory,
            sealed.base_offset,
            created_ms=sealed.created_ms,
            index_interval_bytes=sealed.index_interval_bytes,
        )
        segment.next_offset = sealed.next_offset
        indexes = sealed.open_indexes()
        segment.activate(self._open_files.reopen(segment.log_path), indexes)
        return segment


def _base_offset(segment: Segment) -> Offset:
    return segment.base_offset
