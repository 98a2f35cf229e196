"""The segments of one log, in order: the last is active, and all others are sealed.

Whole segments come and go here; which offsets and producers that means is `Log`'s affair.
"""

from bisect import bisect_right
from collections.abc import Sequence

from ottla.env.disk import Disk
from ottla.env.files import FileRange
from ottla.model.types import Millis, Offset
from ottla.storage.config import LogConfig
from ottla.storage.deletion import Deletion
from ottla.storage.files import INDEXES
from ottla.storage.open_files import OpenFiles
from ottla.storage.segment import Segment
from ottla.storage.swapping import discard, swap_in
from ottla.storage.syncing import DirectoryToSync, PathToSync, Syncable
from ottla.storage.transaction_index import AbortedTransaction


class Segments:
    def __init__(self, open_files: OpenFiles, directory: str, segments: list[Segment]) -> None:
        self.all = segments
        self.active = segments[-1]
        self.unsynced: list[Syncable] = []  # What the next round of syncing has to include.
        self.deletion = Deletion(open_files.disk, directory)
        # Where the log begins is known by the name of its first segment alone, so this must not
        # be lost while a later one stays.
        self.is_first_name_durable = True
        self._open_files = open_files
        self._disk: Disk = open_files.disk
        self._directory = directory

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

    def sync_directory_later(self) -> None:
        self.unsynced.append(DirectoryToSync(self._disk, self._directory))

    def sync_later(self, path: str) -> None:
        self.unsynced.append(PathToSync(self._disk, path))

    def write_active_indexes(self) -> None:
        for path in self.active.write_indexes():
            self.sync_later(path)
        self.sync_directory_later()

    def roll(self, config: LogConfig, now: Millis) -> None:
        """Seal the active segment and begin the next. An OSError on the way changes nothing."""
        sealed = self.active
        if not self.is_first_name_durable:
            self._disk.sync_directory(self._directory)
            self.is_first_name_durable = True
        written = sealed.write_indexes()
        segment = self._create(sealed.next_offset, config, now)
        for path in written:
            self.sync_later(path)
        assert sealed.file is not None, "the active segment has its file"
        self.unsynced.append(sealed.file)
        self.sync_directory_later()
        sealed.seal()
        self.all.append(segment)
        self.active = segment

    def cut(self, offset: Offset) -> None:
        """Remove what lies at or past `offset`; the segment that then is last becomes active."""
        count = len(self.all)
        while len(self.all) > 1 and self.active.base_offset >= offset:
            self.deletion.remove_now(self.all.pop())
            self._activate_last()
        if self.deletion.remove_snapshots_past(offset) or len(self.all) < count:
            # Their producer snapshots must not come back beside what is written here next.
            self._disk.sync_directory(self._directory)
        if self.active.next_offset > offset:
            self.active.truncate_to(offset)
        file = self.active.file
        assert file is not None, "the active segment has its file"
        if file.size > self.active.size:
            file.truncate(self.active.size)  # Part of a write that failed.

    def restart(self, offset: Offset, config: LogConfig, now: Millis) -> None:
        """Remove all, and begin one at `offset`."""
        for segment in reversed(self.all):
            self.deletion.remove_now(segment)
        self.deletion.remove_snapshots_past(-1)
        self.active = self._create(offset, config, now)
        self.all[:] = [self.active]
        self._disk.sync_directory(self._directory)

    def drop_oldest(self, due_ms: Millis) -> Segment:
        """Rename the oldest away; it is removed at `due_ms`."""
        assert len(self.all) > 1, "a log always has a segment to append to"
        self._disk.sync_directory(self._directory)  # First the name of what will be the oldest.
        segment = self.all.pop(0)
        self.deletion.rename_away(segment, due_ms)
        # Then one by one: a power cut must not bring back an older one without a younger one.
        self._disk.sync_directory(self._directory)
        return segment

    def replace(self, sources: Sequence[Segment], cleaned: Segment, due_ms: Millis) -> bool:
        """Put a cleaned segment in the place of its sources; False if they are not all here."""
        first = self.index_of(sources[0].base_offset)
        end = first + len(sources)
        if self.all[first:end] != list(sources) or self.active in sources:
            discard(self._disk, cleaned)
            return False
        swap_in(self._disk, cleaned, sources, self.deletion, due_ms)
        segment = Segment(
            self._open_files,
            self._directory,
            cleaned.base_offset,
            created_ms=cleaned.created_ms,
            index_interval_bytes=cleaned.index_interval_bytes,
        )
        segment.size = cleaned.size
        segment.next_offset = self.all[end].base_offset
        self.all[first:end] = [segment]
        return True

    def forget(self) -> None:
        for segment in self.all:
            segment.forget()

    def _create(self, base_offset: Offset, config: LogConfig, now: Millis) -> Segment:
        segment = Segment(
            self._open_files,
            self._directory,
            base_offset,
            created_ms=now,
            index_interval_bytes=config.index_interval_bytes,
        )
        file = self._disk.open(segment.log_path, create=True)
        if file.size:
            file.truncate(0)  # A segment that was begun and taken back.
        segment.activate(file)
        segment.reset()
        return segment

    def _activate_last(self) -> None:
        segment = self.all[-1]
        if segment.file is None:
            indexes = segment.open_indexes()
            segment.activate(self._disk.open(segment.log_path), indexes)
        self.active = segment


def _base_offset(segment: Segment) -> Offset:
    return segment.base_offset
