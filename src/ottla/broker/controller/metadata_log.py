"""The metadata log of this node on disk: `__cluster_metadata-0`, its snapshots and `quorum-state`.

Blocking code behind the disk seam; what syncs goes through a worker. It answers what the quorum
asks about the log (`LogView`), and keeps note of the voters that it names. Nothing that was synced
is cut away but by the quorum: damage stops the start, with the file and the position.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ottla.broker.controller.metadata_snapshots import MetadataSnapshots
from ottla.env.environment import Environment
from ottla.metadata.image.batches import batches_in, read_controls, read_metadata
from ottla.metadata.image.cluster import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.metadata.image.features import KRAFT_VERSION_MAX
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.model.errors import Damaged
from ottla.model.types import Millis, Offset, TopicPartition, WallTime
from ottla.protocol.control_records import KRaftVersionRecord, VotersRecord
from ottla.protocol.metadata_records import MetadataRecord
from ottla.quorum.election_state import FILE_NAME, ElectionState, from_json, to_json
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Voters
from ottla.records.batch import Batch
from ottla.storage.checkpoint import (
    decode_partition_metadata,
    encode_partition_metadata,
    replace_file,
)
from ottla.storage.config import LogConfig
from ottla.storage.deletion import remove_paths
from ottla.storage.existing_log import open_log
from ottla.storage.log import Log
from ottla.storage.retention import delete_old_segments
from ottla.storage.sync_work import sync_all

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
READ_BYTES: Final = 4 * 1024 * 1024

Numbered = tuple[Offset, MetadataRecord]


class FormatRefused(Exception):
    """A directory that was formatted for something that this version cannot do: one sentence."""


@dataclass(frozen=True, slots=True)
class MetadataLogSettings:
    directory: str  # The log directory that holds the metadata log.
    static_voters: Voters | None = None  # `controller.quorum.voters`, with kraft.version 0.
    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: Millis = 7 * 24 * 3600 * 1000
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_after_ms: Millis = 3600 * 1000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: Millis = 7 * 24 * 3600 * 1000


class MetadataLog:
    def __init__(self, env: Environment, settings: MetadataLogSettings) -> None:
        self._env = env
        self._settings = settings
        self.directory = f"{settings.directory}/{METADATA_TOPIC}-0"
        self._prepare_directory()
        self.snapshots = MetadataSnapshots(env.disk, self.directory)
        self._config = LogConfig(
            segment_bytes=settings.segment_bytes, segment_ms=settings.segment_ms, retention_ms=-1
        )
        static = settings.static_voters
        self.history = VoterHistory(static or Voters.of(()), 0 if static else KRAFT_VERSION_MAX)
        self.state = self._read_state()  # Of the quorum, as the file says it.
        self._log: Log
        self.last_timestamp = 0
        self._bytes_since_snapshot = 0
        self._snapshot_at = env.clock.monotonic()

    @property
    def end_offset(self) -> Offset:
        return self._log.end_offset

    @property
    def log_start_offset(self) -> Offset:
        return self._log.log_start_offset

    @property
    def last_epoch(self) -> int:
        if self._log.epochs.latest >= 0:
            return self._log.epochs.latest
        newest = self.snapshots.newest
        return newest.epoch if newest is not None else 0

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None:
        return OffsetAndEpoch(*self.snapshots.ids[0]) if self.snapshots.ids else None

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return OffsetAndEpoch(*self.snapshots.ids[-1]) if self.snapshots.ids else None

    def epoch_end(self, epoch: int) -> OffsetAndEpoch | None:
        end = self._log.end_offset
        for known, start in reversed(self._log.epochs.entries()):
            if known <= epoch:
                return OffsetAndEpoch(end, known)
            end = start
        return None

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `offset` on: at least one."""
        found = self._log.read(offset, bytes_max, end_offset=self.end_offset)
        assert found is not None, "only what is there is read"
        data = found.read()
        return data[: _whole(data)]

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, bytes_max: int
    ) -> tuple[bytes, int] | None:
        return self.snapshots.read_piece(SnapshotId(*snapshot), position, bytes_max)

    def load_snapshot(self) -> Iterator[Numbered]:
        """Every record of the newest snapshot; what it says of the voters is noted."""
        newest = self.snapshots.newest
        if newest is None:
            return
        snapshot = self.snapshots.read(newest)
        self._check_kraft_version(snapshot.kraft_version)
        voters = Voters.from_record(snapshot.voters) if snapshot.voters is not None else None
        # Snapshot 0-0 is what formatting wrote: the log does not know these voters yet.
        self.history.snapshot_loaded(newest.end_offset, voters, snapshot.kraft_version)
        self.last_timestamp = snapshot.last_timestamp
        for record in snapshot.records:
            yield newest.end_offset - 1, record

    def open(self) -> None:
        """Open the log after its newest snapshot, and note the voters that it names."""
        newest = self.snapshots.newest
        start = newest.end_offset if newest is not None else 0
        self._open_log(start)
        for path, position, batch in self._batches(start, self.end_offset):
            self._note(batch, path, position)

    def records(self, start: Offset, end: Offset) -> Iterator[Numbered]:
        """Every metadata record from `start` up to `end`, both of which are batches' beginnings."""
        for path, position, batch in self._batches(start, end):
            if not batch.is_control:
                yield from read_metadata(batch, path, position)

    def _batches(self, offset: Offset, end: Offset) -> Iterator[tuple[str, int, Batch]]:
        while offset < end:
            found = self._log.read(offset, READ_BYTES, end_offset=end)
            assert found is not None, "the log ends where it says"
            data, path = found.read(), found.file.path
            for position, batch in batches_in(data[: _whole(data)], path, found.position):
                if batch.last_offset >= offset:
                    yield path, position, batch
                    offset = batch.next_offset

    def _open_log(self, start: Offset) -> None:
        log = open_log(
            self._env.disk,
            self.directory,
            METADATA_PARTITION,
            self._config,
            recovery_point=0,
            log_start_offset=0,
            clean=False,
            now=self._env.clock.wall(),
        )
        log.sync()  # A crash may have left its end in the page cache: we say that we have it.
        self._env.disk.sync_directory(self.directory)  # Its first segment may be new.
        if log.end_offset < start:
            # All that the log has is in the snapshot.
            log.start_at(start)
        if log.log_start_offset > start:
            raise Damaged(
                self.directory,
                0,
                f"the log begins at offset {log.log_start_offset}, but no snapshot holds "
                f"what lies between {start} and it",
            )
        # It begins where a snapshot ends, though its first segment may begin before: the epochs of
        # what lies there are forgotten.
        self.snapshots.ids = [i for i in self.snapshots.ids if i.end_offset >= log.log_start_offset]
        if self.snapshots.ids:
            log.advance_log_start(self.snapshots.ids[0].end_offset)
        self._log = log  # Not before: a full disk may end this start halfway.

    def _note(self, batch: Batch, path: str, position: int) -> None:
        self.last_timestamp = batch.max_timestamp
        self._bytes_since_snapshot += batch.size
        if not batch.is_control:
            return
        for offset, control in enumerate(read_controls(batch, path, position), batch.base_offset):
            if isinstance(control, KRaftVersionRecord):
                self._check_kraft_version(control.kraft_version)
                self.history.kraft_version_read(offset, control.kraft_version)
            elif isinstance(control, VotersRecord):
                self.history.voters_read(offset, Voters.from_record(control))

    def _check_kraft_version(self, version: int) -> None:
        if version > KRAFT_VERSION_MAX:
            raise FormatRefused(
                f"{self._settings.directory} has kraft.version {version}, "
                f"but this Ottla knows {KRAFT_VERSION_MAX} at most: open it with a newer one."
            )

    def append(self, batch: Batch, now: WallTime) -> None:
        """One batch into the page cache. An OSError leaves the log as it was."""
        self._log.append([batch], now)
        self._note(batch, self.directory, 0)

    def fetched(self, data: bytes) -> Iterator[Batch]:
        """The leader's next batches, one at a time; Damaged if one does not follow our log.

        Each is to be written and synced before the next: so after a power cut only the last
        batch can be torn, and damage before it is never mistaken for that.
        """
        for position, batch in batches_in(data, "what the leader sent"):
            end, epoch = self.end_offset, self.last_epoch
            if batch.base_offset != end or batch.leader_epoch < epoch:
                what = f"offset {batch.base_offset} of epoch {batch.leader_epoch} cannot follow"
                raise Damaged("what the leader sent", position, f"{what} {end} of {epoch}")
            yield batch

    def truncate_to(self, offset: Offset) -> None:
        self._log.truncate_to(offset)
        self.history.truncated(offset)

    async def sync(self) -> Offset:
        """Returns up to where all is on disk."""
        end = self._log.end_offset
        await self._env.workers.run(sync_all, self._log.durability.begin_sync(end))
        self._log.durability.synced_to(end)
        return end

    async def write_state(self, state: ElectionState) -> None:
        """The vote file, durably."""
        await self._env.workers.run(self._write_state, state)
        self.state = state

    def is_snapshot_due(self) -> bool:
        if self._bytes_since_snapshot >= self._settings.snapshot_after_bytes:
            return True
        age_ms = self._env.clock.monotonic() - self._snapshot_at
        after_ms = self._settings.snapshot_after_ms
        return bool(self._bytes_since_snapshot) and 0 < after_ms <= age_ms

    async def write_snapshot(self, image: ClusterImage) -> None:
        """`image` is whole and will not change: the state below its next offset."""
        end = image.offset + 1
        epoch = self._log.epochs.epoch_of(image.offset)
        snapshot_id = SnapshotId(end, epoch if epoch >= 0 else self.last_epoch)
        newest = self.snapshots.newest
        self._bytes_since_snapshot = 0
        self._snapshot_at = self._env.clock.monotonic()
        if newest is not None and newest.end_offset >= snapshot_id.end_offset:
            return
        voters = self.history.voters_at(end).to_record() if self.history.kraft_version else None
        now = self._env.clock.wall()
        await self._env.workers.run(
            self.snapshots.write, snapshot_id, image, voters, self.last_timestamp, now
        )
        newest = self.snapshots.newest
        if newest is None or newest.end_offset < snapshot_id.end_offset:
            self.snapshots.ids.append(snapshot_id)
            await self._clean(now)
        elif newest != snapshot_id:  # A newer one was installed while this one was written.
            await self._env.workers.run(self.snapshots.delete, [snapshot_id])
        deleted = self._log.files.deletion.take_due(now)
        await self._env.workers.run(remove_paths, self._env.disk, deleted)

    async def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """A fetched snapshot is whole: it replaces the log and all older snapshots."""
        snapshot_id = SnapshotId(*snapshot)
        await self._env.workers.run(self.snapshots.finish_pieces, snapshot_id)
        gone, self.snapshots.ids = self.snapshots.ids, [snapshot_id]
        self._log.start_at(snapshot_id.end_offset)
        await self.sync()
        others = [other for other in gone if other != snapshot_id]
        await self._env.workers.run(self.snapshots.delete, others)

    async def _clean(self, now: WallTime) -> None:
        """Forget old snapshots, and the part of the log that only they still needed."""
        gone = self.snapshots.expendable(
            self._log.size_bytes,
            bytes_max=self._settings.retention_bytes,
            age_ms_max=self._settings.retention_ms,
            now=now,
        )
        if not gone:
            return
        # At once: while a worker syncs, another snapshot may be written, or installed.
        kept = self.snapshots.ids = self.snapshots.ids[len(gone) :]
        # The log first: it may begin only where a snapshot ends.
        self._log.advance_log_start(kept[0].end_offset)
        for step in delete_old_segments(self._log, now, kept[0].end_offset):
            await self._env.workers.run(step.sync)
        await self._env.workers.run(self.snapshots.delete, gone)

    def close(self) -> None:
        self._log.close()

    def abandon(self) -> None:
        self._log.abandon()

    def _prepare_directory(self) -> None:
        disk = self._env.disk
        if not disk.is_directory(self.directory):
            disk.make_directory(self.directory)
            disk.sync_directory(self._settings.directory)
        path = f"{self.directory}/partition.metadata"
        if not disk.exists(path):
            replace_file(disk, path, encode_partition_metadata(METADATA_TOPIC_ID))
        elif decode_partition_metadata(path, disk.read(path)) != METADATA_TOPIC_ID:
            raise Damaged(path, 0, "another topic's id: this is not a metadata log")

    def _read_state(self) -> ElectionState:
        path = f"{self.directory}/{FILE_NAME}"
        if not self._env.disk.exists(path):
            return ElectionState()
        try:
            return from_json(self._env.disk.read(path))
        except ValueError as error:
            raise Damaged(path, 0, str(error)) from error

    def _write_state(self, state: ElectionState) -> None:
        content = to_json(state, self.history.kraft_version, tuple(self.history.voters.by_id))
        replace_file(self._env.disk, f"{self.directory}/{FILE_NAME}", content)


def _whole(data: bytes) -> int:
    """Where the last whole batch of a read ends; the log's recovery has seen all of it."""
    end = 0
    while end + 12 <= len(data):
        size = int.from_bytes(data[end + 8 : end + 12]) + 12
        if end + size > len(data):
            break
        end += size
    return end
