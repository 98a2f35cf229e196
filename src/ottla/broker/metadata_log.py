"""The metadata log of this node on disk: `__cluster_metadata-0`, its snapshots and `quorum-state`.

Blocking code behind the disk seam; what syncs goes through a worker. Whoever loads gets every
record once, in order: those of the newest snapshot, then those of the log after it. Nothing that
was synced is ever cut away: damage stops the start, with the file and the position.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.broker.metadata_snapshots import MetadataSnapshots
from ottla.env.environment import Environment
from ottla.metadata.batches import batches_in, control_batch, read_controls, read_metadata
from ottla.metadata.cluster import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.metadata.features import KRAFT_VERSION_MAX
from ottla.metadata.image import ClusterImage
from ottla.metadata.snapshot_file import SnapshotId
from ottla.model.errors import Damaged
from ottla.model.types import Millis, NodeId, Offset, TopicPartition, Uuid, WallTime
from ottla.protocol.control_records import KRaftVersionRecord, VotersRecord
from ottla.protocol.metadata_records import MetadataRecord
from ottla.quorum.election_state import FILE_NAME, ElectionState, from_json, to_json
from ottla.quorum.quorum import BeginEpoch, PersistState, Quorum
from ottla.quorum.voters import Voters
from ottla.records.batch import Batch
from ottla.storage.checkpoint import (
    decode_partition_metadata,
    encode_partition_metadata,
    replace_file,
)
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.syncing import sync_all

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
    def __init__(
        self,
        env: Environment,
        node_id: NodeId,
        directory_id: Uuid,
        settings: MetadataLogSettings,
    ) -> None:
        self._env = env
        self._settings = settings
        self.directory = f"{settings.directory}/{METADATA_TOPIC}-0"
        self._prepare_directory()
        self._snapshots = MetadataSnapshots(env.disk, self.directory)
        self._config = LogConfig(
            segment_bytes=settings.segment_bytes, segment_ms=settings.segment_ms, retention_ms=-1
        )
        self.quorum = Quorum(
            node_id,
            directory_id,
            settings.static_voters or Voters.of(()),
            0 if settings.static_voters else KRAFT_VERSION_MAX,
            self._read_state(),
        )
        self._log: Log
        self.last_epoch = 0  # Of the last batch.
        self.last_timestamp = 0
        self._bytes_since_snapshot = 0
        self._snapshot_at = env.clock.monotonic()

    @property
    def end_offset(self) -> Offset:
        return self._log.end_offset

    @property
    def log_start_offset(self) -> Offset:
        return self._log.log_start_offset

    def load(self) -> Iterator[Numbered]:
        """Every record of the newest snapshot and of the log after it, in order."""
        start = 0
        newest = self._snapshots.newest
        if newest is not None:
            yield from self._load_snapshot(newest)
            start = newest.end_offset
        self._open_log(start)
        offset = start
        while offset < self.end_offset:
            found = self._log.read(offset, READ_BYTES, end_offset=self.end_offset)
            assert found is not None, "the log ends where it says"
            path, first = found.file.path, found.position
            for position, batch in _whole_batches(found.read(), path, first):
                if batch.last_offset >= offset:
                    yield from self._load_batch(batch, path, position)
                    offset = batch.next_offset

    def _load_snapshot(self, snapshot_id: SnapshotId) -> Iterator[Numbered]:
        snapshot = self._snapshots.read(snapshot_id)
        if snapshot.kraft_version:
            self._kraft_version_is(snapshot.kraft_version)
        if snapshot.voters is not None:
            self.quorum.voters = Voters.from_record(snapshot.voters)
            # Snapshot 0-0 is what formatting wrote: the log does not know these voters yet.
            self.quorum.are_voters_in_log = snapshot_id.end_offset > 0
        self.last_epoch = snapshot_id.epoch
        self.last_timestamp = snapshot.last_timestamp
        for record in snapshot.records:
            yield snapshot_id.end_offset - 1, record

    def _open_log(self, start: Offset) -> None:
        self._log = Log.open(
            self._env.disk,
            self.directory,
            METADATA_PARTITION,
            self._config,
            recovery_point=0,
            log_start_offset=0,
            clean=False,
            now=self._env.clock.wall(),
        )
        self._env.disk.sync_directory(self.directory)  # Its first segment may be new.
        if self._log.end_offset < start:
            # All that the log has is in the snapshot.
            self._log.start_at(start)
        if self._log.log_start_offset > start:
            raise Damaged(
                self.directory,
                0,
                f"the log begins at offset {self._log.log_start_offset}, but no snapshot holds "
                f"what lies between {start} and it",
            )

    def _load_batch(self, batch: Batch, path: str, position: int) -> Sequence[Numbered]:
        self.last_epoch = max(self.last_epoch, batch.leader_epoch)
        self.last_timestamp = batch.max_timestamp
        self._bytes_since_snapshot += batch.size
        if not batch.is_control:
            return read_metadata(batch, path, position)
        for control in read_controls(batch, path, position):
            if isinstance(control, KRaftVersionRecord):
                self._kraft_version_is(control.kraft_version)
            elif isinstance(control, VotersRecord):
                self.quorum.voters_changed(Voters.from_record(control))
        return ()

    def _kraft_version_is(self, version: int) -> None:
        if version > KRAFT_VERSION_MAX:
            raise FormatRefused(
                f"{self._settings.directory} has kraft.version {version}, "
                f"but this Ottla knows {KRAFT_VERSION_MAX} at most: open it with a newer one."
            )
        self.quorum.kraft_version = version

    def _check_voters(self) -> None:
        """A quorum of one is this node alone, on this very disk."""
        voters = self.quorum.voters
        if not voters.by_id:
            raise FormatRefused(
                f"{self._settings.directory} was formatted for static voters: set "
                "controller.quorum.voters to this node, as it was when it was formatted."
            )
        if not voters.has(self.quorum.node_id, self.quorum.directory_id):
            raise FormatRefused(
                f"node {self.quorum.node_id} with the disk of {self._settings.directory} is not "
                f"among the voters of its metadata log ({', '.join(map(str, voters.by_id))})."
            )
        if not voters.is_alone:
            raise FormatRefused(
                f"{self._settings.directory} is one of {len(voters.by_id)} voters' "
                f"({', '.join(map(str, voters.by_id))}), but this Ottla runs a quorum of one only."
            )

    async def begin_epoch(self, now: WallTime) -> None:
        """Win the election: first the new epoch is durable, then its first records are."""
        self._check_voters()
        for effect in self.quorum.log_loaded(self.last_epoch):
            match effect:
                case PersistState(state):
                    await self._env.workers.run(self._write_state, state)
                case BeginEpoch(epoch, records):
                    self.append(control_batch(records, self.end_offset, epoch, now), now)
                    await self.sync()
                    self.quorum.are_voters_in_log = True

    def append(self, data: bytearray, now: WallTime) -> None:
        """One batch into the page cache. An OSError leaves the log as it was."""
        batch = Batch(data)
        self._log.append([batch], now)
        self._bytes_since_snapshot += batch.size
        self.last_epoch = batch.leader_epoch
        self.last_timestamp = batch.max_timestamp

    async def sync(self) -> None:
        end = self._log.end_offset
        await self._env.workers.run(sync_all, self._log.unsynced_files())
        self._log.synced_to(end)

    def is_snapshot_due(self) -> bool:
        if self._bytes_since_snapshot >= self._settings.snapshot_after_bytes:
            return True
        age_ms = self._env.clock.monotonic() - self._snapshot_at
        after_ms = self._settings.snapshot_after_ms
        return bool(self._bytes_since_snapshot) and 0 < after_ms <= age_ms

    async def write_snapshot(self, image: ClusterImage) -> None:
        """`image` is whole and will not change: the state below its next offset."""
        snapshot_id = SnapshotId(image.offset + 1, self.last_epoch)
        newest = self._snapshots.newest
        self._log.remove_deleted(self._env.clock.wall())
        self._bytes_since_snapshot = 0
        self._snapshot_at = self._env.clock.monotonic()
        if newest is not None and newest.end_offset >= snapshot_id.end_offset:
            return
        voters = self.quorum.voters.to_record() if self.quorum.kraft_version else None
        now = self._env.clock.wall()
        await self._env.workers.run(
            self._snapshots.write, snapshot_id, image, voters, self.last_timestamp, now
        )
        self._snapshots.ids.append(snapshot_id)
        await self._clean(now)

    async def _clean(self, now: WallTime) -> None:
        """Forget old snapshots, and the part of the log that only they still needed."""
        gone = self._snapshots.expendable(
            self._log.size_bytes,
            bytes_max=self._settings.retention_bytes,
            age_ms_max=self._settings.retention_ms,
            now=now,
        )
        if not gone:
            return
        kept = self._snapshots.ids[len(gone) :]
        # The log first: it may begin only where a snapshot ends.
        self._log.advance_log_start(kept[0].end_offset)
        self._log.delete_old_segments(now, kept[0].end_offset)
        self._snapshots.ids = kept
        await self._env.workers.run(self._snapshots.delete, gone)

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
        content = to_json(state, self.quorum.kraft_version, tuple(self.quorum.voters.by_id))
        replace_file(self._env.disk, f"{self.directory}/{FILE_NAME}", content)


def _whole_batches(data: bytes, path: str, position: int) -> Iterator[tuple[int, Batch]]:
    """The batches of a read that may end inside one; the log's recovery has seen all of it."""
    end = 0
    while end + 12 <= len(data):
        size = int.from_bytes(data[end + 8 : end + 12]) + 12
        if end + size > len(data):
            break
        end += size
    return batches_in(data[:end], path, position)
