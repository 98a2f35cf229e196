"""One segment of a partition log: a file of record batches, its indexes, and finding one's way.

A segment moves whole batches and looks no further than their headers. Rolling, retention and the
sync policy belong to `Log`. The last segment of a log is active: its file and indexes are held
open. The others are sealed: `OpenFiles` opens and forgets those as they are read.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct
from typing import Final

from ottla.env.disk import Buffer, File
from ottla.env.files import FileRange
from ottla.model.errors import Damaged
from ottla.model.types import Millis, Offset
from ottla.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    Batch,
    PlacedBatch,
)
from ottla.storage.files import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, file_name
from ottla.storage.index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    BadIndex,
    OffsetIndex,
    TimeIndex,
    TimestampedOffset,
    last_time_entry,
)
from ottla.storage.open_files import Indexes, OpenFiles
from ottla.storage.transaction_index import TransactionIndex

BOUNDARIES_MAX: Final = 128
WALK_BYTES: Final = 8 * 1024
SCAN_BYTES: Final = 1024 * 1024

_WALK: Final = Struct(">qi4xb6xi")  # Base offset, length, magic, last offset delta.


class Segment:
    __slots__ = (
        "_bytes_since_entry",
        "_first_timestamp",
        "_latest",
        "_open_files",
        "_transactions",
        "base_offset",
        "boundaries",
        "created_ms",
        "directory",
        "file",
        "index_interval_bytes",
        "indexes",
        "log_path",
        "mark",
        "next_offset",
        "size",
    )

    def __init__(
        self,
        open_files: OpenFiles,
        directory: str,
        base_offset: Offset,
        *,
        created_ms: Millis = 0,
        index_interval_bytes: int = 4096,
        mark: str = "",
    ) -> None:
        """`mark` ends the names of its files while it is not yet part of a log."""
        self.base_offset = base_offset
        self.next_offset = base_offset  # Of a sealed segment: where the next one begins, at most.
        self.directory = directory
        self.mark = mark
        self.log_path = self.path(LOG)
        self.size = 0
        self.created_ms = created_ms
        self.index_interval_bytes = index_interval_bytes
        self.file: File | None = None  # Held open while active.
        self.indexes: Indexes | None = None  # Held in memory while active.
        self.boundaries: dict[Offset, int] = {}  # Where the last few writes began: the tail's way.
        self._open_files = open_files
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        self._latest: TimestampedOffset | None = None
        self._transactions: TransactionIndex | None = None

    def activate(self, file: File, indexes: Indexes | None = None) -> None:
        """Hold `file` open for appends, with the indexes as they are known."""
        self.file = file
        self.size = file.size
        if indexes is None:
            indexes = Indexes(OffsetIndex(self.base_offset), TimeIndex(self.base_offset))
        self.indexes = indexes
        self._open_files.indexes.drop(self.log_path)  # What it shared is out of date from now on.

    def append(self, batches: Sequence[PlacedBatch]) -> None:
        """Write batches that have their offsets, in one call; a failure changes only the file."""
        file = self.file
        assert file is not None, "only the active segment grows"
        position = self.size
        file.append([batch[0] for batch in batches])
        boundaries = self.boundaries
        boundaries[batches[0][2]] = position
        if len(boundaries) > BOUNDARIES_MAX:
            for offset in list(islice(boundaries, BOUNDARIES_MAX // 2)):
                del boundaries[offset]
        self._note_all(batches, position)

    def _note_all(self, batches: Sequence[PlacedBatch], position: int) -> None:
        """All that one write put there: index each if it is time to."""
        if position == 0:
            self._first_timestamp = batches[0][4]
        indexes = self.indexes
        assert indexes is not None, "only the active segment is indexed"
        latest, interval = self._latest or self.latest, self.index_interval_bytes
        since_entry, timestamp = self._bytes_since_entry, latest.timestamp
        for _, size, _, last_offset, max_timestamp, epoch, _ in batches:
            if max_timestamp > timestamp:
                timestamp = max_timestamp
                later = (last_offset, epoch)
            if since_entry > interval:
                if timestamp > latest.timestamp:
                    latest = TimestampedOffset(timestamp, *later)
                indexes.offsets.add(last_offset, position)
                indexes.times.add_if_later(timestamp, latest.offset)
                since_entry = 0
            since_entry += size
            position += size
        if timestamp > latest.timestamp:
            latest = TimestampedOffset(timestamp, *later)
        self._latest = latest
        self._bytes_since_entry = since_entry
        self.size = position
        self.next_offset = last_offset + 1

    def note(self, batch: Batch, position: int) -> None:
        """The batch lies at `position`, the present end: index it if it is time to."""
        self._note_all((batch.placed,), position)

    def reset(self) -> None:
        """Forget all that was noted, before a scan notes it again."""
        assert self.indexes is not None, "only an active segment is scanned"
        self.indexes.offsets.clear()
        self.indexes.times.clear()
        self.boundaries.clear()
        self.size = 0
        self.next_offset = self.base_offset
        self._bytes_since_entry = 0
        self._first_timestamp = None
        self._latest = TimestampedOffset(NO_TIMESTAMP, self.base_offset)
        self._transactions = TransactionIndex()

    def index_entries_left(self, index_bytes_max: int) -> int:
        """For how many more entries both indexes have room."""
        assert self.indexes is not None, "only the active segment grows"
        return min(
            (index_bytes_max - self.indexes.offsets.size_bytes) // OFFSET_ENTRY_BYTES,
            (index_bytes_max - self.indexes.times.size_bytes) // TIME_ENTRY_BYTES,
        )

    @property
    def latest(self) -> TimestampedOffset:
        """The greatest timestamp, and the last offset of the batch that has it."""
        if self._latest is None:
            if self.indexes is not None:
                self._latest = self.indexes.times.last
            else:
                self._latest = self._read_last_time_entry()
        return self._latest

    @property
    def first_timestamp(self) -> int:
        """The timestamp of the first batch, from which `segment.ms` counts; -1 if none."""
        if self._first_timestamp is None:
            if self.size < HEADER_BYTES:
                return NO_TIMESTAMP
            header = self.open_file().read(0, HEADER_BYTES)
            if len(header) < HEADER_BYTES:
                raise Damaged(self.log_path, len(header), "it is shorter than it was")
            self._first_timestamp = Batch(header).max_timestamp
        return self._first_timestamp

    @property
    def modified_ms(self) -> int:
        return self._open_files.disk.modified_ms(self.log_path)

    def open_file(self) -> File:
        return self.file if self.file is not None else self._open_files.file(self.log_path)

    def open_indexes(self) -> Indexes:
        if self.indexes is not None:
            return self.indexes
        return self._open_files.indexes.get(self.log_path, self._load_indexes)

    def transactions(self) -> TransactionIndex:
        if self._transactions is None:
            path = self.path(TRANSACTION_INDEX)
            disk = self._open_files.disk
            data = disk.read(path) if disk.exists(path) else b""
            try:
                self._transactions = TransactionIndex.decode(data, self.base_offset)
            except BadIndex as bad:  # Nothing tells what it said: a reader would take all for done.
                raise Damaged(path, 0, str(bad)) from bad
        return self._transactions

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{file_name(self.base_offset, suffix)}{self.mark}"

    def find(self, offset: Offset) -> tuple[int, int] | None:
        """Position and size of the first batch that reaches `offset`; None if none does."""
        position = self.boundaries.get(offset, -1)
        file = self.open_file()
        if position < 0:
            position = self.open_indexes().offsets.position_before(offset)
        while position < self.size:
            chunk = file.read(position, min(WALK_BYTES, self.size - position))
            at = 0
            limit = len(chunk) - _WALK.size
            while at <= limit:
                base_offset, length, magic, delta = _WALK.unpack_from(chunk, at)
                size = length + LOG_OVERHEAD_BYTES
                if magic != MAGIC or size < HEADER_BYTES:
                    raise Damaged(self.log_path, position + at, "no record batch starts here")
                if base_offset + delta >= offset:
                    return position + at, size
                at += size
            if at == 0:
                raise Damaged(self.log_path, position, "a record batch was cut off")
            position += at
        return None

    def read(
        self, offset: Offset, bytes_max: int, end_offset: Offset, at_least_one: bool
    ) -> FileRange | None:
        """As `Log.read`, for the part of it that is in this segment."""
        boundaries = self.boundaries
        position = boundaries.get(offset, -1)
        first_bytes = 0
        if position < 0:
            found = self.find(offset)
            if found is None:
                return None
            position, first_bytes = found
        limit = self.size
        if end_offset < self.next_offset:
            limit = boundaries.get(end_offset, -1)
            if limit < 0:
                end = self.find(end_offset)
                limit = self.size if end is None else end[0]
        available = limit - position
        if available > bytes_max:
            if not first_bytes:
                found = self.find(offset)
                assert found is not None, "the boundary was noted when the batch was written"
                first_bytes = found[1]
            if first_bytes > bytes_max and not at_least_one:
                return None
            available = min(available, max(bytes_max, first_bytes))
        if available <= 0:
            return None
        file = self.file
        return FileRange(file if file is not None else self.open_file(), position, available)

    def batches(self, position: int = 0) -> Iterator[tuple[int, Batch]]:
        """Every whole batch from `position` on, with its place; stops where none starts."""
        return scan(self.open_file(), position, self.size)

    def write_indexes(self) -> list[str]:
        """Put the indexes into their files, complete for what the segment holds now."""
        indexes = self.open_indexes()
        latest = self.latest
        indexes.times.add_if_later(latest.timestamp, latest.offset)
        written = [
            self._write(INDEX, indexes.offsets.encode()),
            self._write(TIME_INDEX, indexes.times.encode()),
        ]
        disk = self._open_files.disk
        if self._transactions is not None and (
            self._transactions.entries or disk.exists(self.path(TRANSACTION_INDEX))
        ):
            written.append(self._write(TRANSACTION_INDEX, self._transactions.encode()))
        return written

    def seal(self) -> None:
        """No more appends: the open file and the indexes go to what is shared."""
        assert self.file is not None, "a segment is sealed once"
        indexes = self.open_indexes()
        self._open_files.keep(self.log_path, self.file)
        self._open_files.indexes.drop(self.log_path)
        self._open_files.indexes.get(self.log_path, lambda: (indexes, indexes.size_bytes))
        self.file = None
        self.indexes = None
        self.boundaries.clear()

    def truncate_to(self, offset: Offset) -> None:
        """Cut the active segment so that nothing at or past `offset` is left; synced at once.

        `next_offset` moves last: after an OSError the same call does what is left.
        """
        assert self.file is not None, "only an active one is cut"
        assert self.indexes is not None, "an active one has its indexes"
        transactions = self.transactions()  # They may have to be read: before anything is changed.
        found = self.find(offset)
        if found is not None:
            self.file.truncate(found[0])
            self.size = found[0]
        self.boundaries.clear()
        self.indexes.offsets.truncate_to(offset)
        self.indexes.times.truncate_to(offset)
        transactions.truncate_to(offset)
        self._bytes_since_entry = 0
        self._latest = self.indexes.times.last
        if self.size == 0:
            self._first_timestamp = None
        for _, batch in self.batches(self.indexes.offsets.last_position):
            if batch.max_timestamp > self._latest.timestamp:
                self._latest = TimestampedOffset(batch.max_timestamp, batch.last_offset)
        self.file.sync()
        self.next_offset = min(offset, self.next_offset)

    def forget(self) -> None:
        """The files are going away."""
        self._open_files.drop(self.log_path)
        self.file = None
        self.indexes = None

    def _write(self, suffix: str, content: bytes) -> str:
        path = self.path(suffix)
        file = self._open_files.disk.open(path, create=True)
        try:
            # Written again, what is there could be lost with the power, below a recovery point.
            if file.size != len(content) or file.read(0, file.size) != content:
                if file.size:
                    file.truncate(0)
                if content:
                    file.append([content])
        finally:
            file.close()
        return path

    def _load_indexes(self) -> tuple[Indexes, int]:
        """Read them, by Kafka's sanity rules; a missing or bad one is rebuilt from the batches."""
        disk = self._open_files.disk
        try:
            offsets = OffsetIndex.decode(disk.read(self.path(INDEX)), self.base_offset, self.size)
            times = TimeIndex.decode(disk.read(self.path(TIME_INDEX)), self.base_offset)
            indexes = Indexes(offsets, times)
        except (BadIndex, FileNotFoundError):
            indexes = self._rebuild_indexes()
        return indexes, indexes.size_bytes

    def _rebuild_indexes(self) -> Indexes:
        rebuilt = Segment(
            self._open_files,
            self.directory,
            self.base_offset,
            index_interval_bytes=self.index_interval_bytes,
        )
        rebuilt.activate(self.open_file())
        rebuilt.reset()
        for position, batch in self.batches():
            rebuilt.note(batch, position)
        if rebuilt.size != self.size:
            raise Damaged(self.log_path, rebuilt.size, "no record batch starts here")
        rebuilt.write_indexes()
        assert rebuilt.indexes is not None, "it was activated above"
        return rebuilt.indexes

    def _read_last_time_entry(self) -> TimestampedOffset:
        path = self.path(TIME_INDEX)
        disk = self._open_files.disk
        if not disk.exists(path):
            return self.open_indexes().times.last
        file = disk.open(path)
        entry = file.read(max(0, file.size - TIME_ENTRY_BYTES), TIME_ENTRY_BYTES)
        file.close()
        return last_time_entry(entry, self.base_offset)


def scan(file: File, position: int, end: int) -> Iterator[tuple[int, Batch]]:
    """Batches one after the other, their CRC not checked, up to the first that is not whole."""
    chunk: Buffer = b""
    chunk_start = position
    while position < end:
        at = position - chunk_start
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_start, at = (
                file.read(position, min(SCAN_BYTES, end - position)),
                position,
                0,
            )
            if len(chunk) < HEADER_BYTES:
                return
        _, length, magic, delta = _WALK.unpack_from(chunk, at)
        size = length + LOG_OVERHEAD_BYTES
        if magic != MAGIC or size < HEADER_BYTES or delta < 0 or position + size > end:
            return
        if at + size > len(chunk):
            chunk, chunk_start, at = file.read(position, max(SCAN_BYTES, size)), position, 0
            if len(chunk) < size:
                return
        yield position, Batch(memoryview(chunk)[at : at + size])
        position += size
