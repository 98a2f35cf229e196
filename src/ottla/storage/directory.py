"""One entry of `log.dirs`: its lock, its identity, its checkpoints and the logs in it.

`directory_loader` opens the logs that are in it, `run_marks` tells how the last process ended.
An I/O error takes the whole directory offline, and nothing else; a full disk only refuses writes
until there is room again. A log that is damaged is left alone and named, and the others serve on.
Calls block; `ottla.broker` decides which of them run on a worker.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from ottla.env.disk import Disk, Lock
from ottla.env.errnos import FULL, PASSING
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Offset, TopicPartition, Uuid, WallTime
from ottla.storage.checkpoints import Checkpoints, Draft
from ottla.storage.config import LogConfig
from ottla.storage.directory_names import DirectoryKind, marked_name
from ottla.storage.hosted_replicas import Replica, note_hosted, write_hosted
from ottla.storage.identity import (
    META_PROPERTIES,
    MetaProperties,
    read_meta,
    refuse_foreign,
    take,
    write_meta,
)
from ottla.storage.identity import DirectoryRefused as DirectoryRefused
from ottla.storage.log import Log
from ottla.storage.new_log import make_files, open_new_log, write_partition_metadata
from ottla.storage.open_files import OpenFiles
from ottla.storage.run_marks import RunMarks
from ottla.storage.sync_work import sync_together

METADATA_TOPIC: Final = "__cluster_metadata"
RESERVE_BYTES: Final = 256 * 1024 * 1024


class LogDirectory:
    def __init__(
        self,
        disk: Disk,
        path: str,
        lock: Lock,
        meta: MetaProperties | None,
        *,
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:
        self.disk = disk
        self.path = path
        self.meta = meta
        self.reserve_bytes = reserve_bytes
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, Uuid] = {}
        self.damaged: dict[TopicPartition, Damaged] = {}
        self.hosted: set[Replica] = set()  # Whose logs were begun here, as of the last start.
        # Files of logs that are to be, with the topic's id once they are whole.
        self.made: dict[TopicPartition, Uuid | None] = {}
        self.notices: list[str] = []  # What a person should hear of, once.
        self.failure: OSError | None = None  # Why the directory is offline.
        self.is_full = False
        self.open_files = OpenFiles(disk)
        self._lock = lock
        self._due: list[tuple[int, str]] = []  # What was deleted, until its delay is over.
        self.marks = RunMarks(disk, path)
        self.checkpoints = Checkpoints(disk, path)
        self.notices += self.checkpoints.notices

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        *,
        cluster_id: str | None = None,
        node_id: int | None = None,
        reserve_bytes: int = RESERVE_BYTES,
    ) -> "LogDirectory":
        """Take the directory for this process; DirectoryRefused if it is not ours to take."""
        lock = take(disk, path)
        try:
            meta = read_meta(disk, path)
            refuse_foreign(disk, path, meta, cluster_id, node_id)
            return cls(disk, path, lock, meta, reserve_bytes=reserve_bytes)
        except BaseException:
            lock.release()
            raise

    def format(self, meta: MetaProperties) -> None:
        """Make the directory part of a cluster. It has to be empty, or formatted the same way."""
        assert self.meta is None or self.meta == meta, "formatting never changes an identity"
        write_meta(self.disk, self.path, meta)
        self.meta = meta

    def create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        now: WallTime,
    ) -> Log:
        """A new, empty partition. It is synced with its first records, not before."""
        assert topic_partition not in self.logs, "a partition is created once"
        if self.made.pop(topic_partition, None) != topic_id:
            self._forget_stale(topic_partition)
            make_files(self.disk, self.path, topic_partition, topic_id)
        log = open_new_log(self.open_files, self.path, topic_partition, config, now)
        try:
            note_hosted(self.disk, self.path, (topic_id, topic_partition.partition))
        except OSError:
            log.abandon()
            raise
        self.topic_ids[topic_partition] = topic_id
        self.logs[topic_partition] = log
        return log

    def _forget_stale(self, topic_partition: TopicPartition) -> None:
        """A recovery point of one that was deleted would make a new one look damaged."""
        if self.checkpoints.is_stale(topic_partition):
            self.checkpoint(self.checkpoints.high_watermarks)

    def set_damaged(self, topic_partition: TopicPartition, damage: Damaged) -> None:
        """Damage was found while it was in use: its files are left as they are."""
        self.logs.pop(topic_partition).abandon()
        self.damaged[topic_partition] = damage

    def set_missing(self, topic_partition: TopicPartition, topic_id: Uuid) -> None:
        """Its directory was removed while no process was here: no new log may take its place."""
        path = f"{self.path}/{topic_partition}"
        self.topic_ids[topic_partition] = topic_id
        self.damaged[topic_partition] = Damaged(
            path, 0, "the directory is gone, though this broker has a replica in it"
        )

    def keep_hosted(self, replicas: Iterable[Replica]) -> None:
        """Write down that of `hosted` only these are of interest, and what is here now."""
        here = [*self.logs, *self.damaged]
        now = {(self.topic_ids[n], n.partition) for n in here if n in self.topic_ids}
        if now.union(replicas) != self.hosted:
            self.hosted = now.union(replicas)
            write_hosted(self.disk, self.path, self.hosted)

    def set_topic_id(self, topic_partition: TopicPartition, topic_id: Uuid) -> None:
        """Write down whose partition this is, where that was never written or got lost."""
        if self.topic_ids.get(topic_partition) != topic_id:
            write_partition_metadata(self.disk, f"{self.path}/{topic_partition}", topic_id)
            self.topic_ids[topic_partition] = topic_id

    def delete_log(
        self, topic_partition: TopicPartition, unique: bytes, now: WallTime, delay_ms: int
    ) -> None:
        """Rename the partition's directory away; `take_deleted` names it after the delay.

        Durable with the next checkpoint. A power cut before it leaves a log whose topic the
        cluster does not know.
        """
        path = self._rename_away(topic_partition, unique, DirectoryKind.DELETE)
        self._due.append((now + delay_ms, path))

    def discard(self, topic_partition: TopicPartition, unique: bytes, now: WallTime) -> None:
        """Rename the files of a log that could not be created; `take_deleted` names them."""
        self._due.append((now, self._mark(topic_partition, unique, DirectoryKind.DELETE)))

    def set_stray(self, topic_partition: TopicPartition, unique: bytes) -> None:
        """The cluster does not know this replica: keep its bytes, under another name.

        Durable with the next checkpoint.
        """
        path = self._rename_away(topic_partition, unique, DirectoryKind.STRAY)
        self.notices.append(f"{path} belongs to no topic that the cluster knows: kept, not served")

    def _rename_away(
        self, topic_partition: TopicPartition, unique: bytes, kind: DirectoryKind
    ) -> str:
        log = self.logs.pop(topic_partition, None)
        if log is not None:
            log.abandon()
        self.topic_ids.pop(topic_partition, None)
        self.damaged.pop(topic_partition, None)
        self.checkpoints.forget(topic_partition)
        return self._mark(topic_partition, unique, kind)

    def _mark(self, topic_partition: TopicPartition, unique: bytes, kind: DirectoryKind) -> str:
        path = f"{self.path}/{marked_name(topic_partition, unique, kind)}"
        with suppress(FileNotFoundError):  # Somebody removed it by hand.
            self.disk.rename(f"{self.path}/{topic_partition}", path)
        return path

    def lower_recovery_point(self, topic_partition: TopicPartition, offset: Offset) -> bool:
        """Promise nothing past `offset`, below which a log is about to be cut.

        True if a file on disk may still do so: then a checkpoint has to be written before the cut,
        and this asked again. A crash between the two is no damage.
        """
        log, cleaned = self.logs[topic_partition], self.checkpoints.cleaned
        log.recovery_point = min(log.recovery_point, offset)
        if cleaned.get(topic_partition, 0) > offset:
            cleaned[topic_partition] = offset
        return self.checkpoints.may_promise(topic_partition, offset)

    def truncate_log(self, topic_partition: TopicPartition, offset: Offset) -> None:
        """Cut a log. `lower_recovery_point` comes first."""
        log = self.logs[topic_partition]
        assert offset >= log.end_offset or not self.checkpoints.may_promise(
            topic_partition, offset
        ), "the recovery point on disk is lowered before"
        log.truncate_to(offset)

    def start_log_at(self, topic_partition: TopicPartition, offset: Offset) -> None:
        """Empty a log; its next record gets `offset`. `lower_recovery_point` to 0 comes first."""
        assert not self.checkpoints.may_promise(topic_partition, 0), "it is lowered before"
        self.logs[topic_partition].start_at(offset)

    def take_deleted(self, now: WallTime) -> list[str]:
        """Paths of files and directories whose deletion is due, for `remove_paths` in a worker."""
        due = [path for log in self.logs.values() for path in log.files.deletion.take_due(now)]
        due += [path for due_ms, path in self._due if due_ms <= now]
        self._due = [entry for entry in self._due if entry[0] > now]
        return due

    def delete_at_once(self, path: str, now: WallTime) -> None:
        """A deletion that the last process had begun."""
        self._due.append((now, path))

    def put_off(self, paths: Iterable[str], now: WallTime) -> None:
        """`take_deleted` names these once more: not all of them could be removed."""
        self._due += [(now, path) for path in paths]

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset] | None = None) -> None:
        """Write down how far each log is synced and where it starts; watermarks if given."""
        draft = self.draft_checkpoint(high_watermarks)
        draft.write()
        self.checkpoints.written(draft)

    def draft_checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset] | None) -> Draft:
        """The same for a worker to write; `checkpoints.written` is told when it is."""
        checkpoints = self.checkpoints
        for topic_partition, log in self.logs.items():
            if topic_partition.topic == METADATA_TOPIC:
                continue
            checkpoints.recovery_points[topic_partition] = log.recovery_point
            if log.log_start_offset > log.oldest_offset:
                checkpoints.log_starts[topic_partition] = log.log_start_offset
            else:
                checkpoints.log_starts.pop(topic_partition, None)
        return checkpoints.draft(high_watermarks)

    def close(
        self,
        broker_epoch: int = -1,
        high_watermarks: Mapping[TopicPartition, Offset] | None = None,
    ) -> None:
        """Close every log, checkpoint, and say that the stop was clean."""
        if self.failure is None:
            work = [each for log in self.logs.values() for each in log.finish()]
            sync_together(self.disk, self.path, work)
            for log in self.logs.values():
                log.finished()
            self.checkpoint(high_watermarks)
            self.marks.end_cleanly(broker_epoch)
        self.open_files.close()
        self._lock.release()

    def abandon(self) -> None:
        """Let go of everything as it is; the next open recovers."""
        for log in self.logs.values():
            log.abandon()
        self.open_files.close()
        self._lock.release()

    def failed(self, error: OSError, *, for_good: bool = False) -> Refusal:
        """What to answer after an OSError here. All but a shortage takes the directory offline."""
        if error.errno in FULL and not for_good:
            self.is_full = True
            return self._refusal_of_full_disk()
        if error.errno in PASSING and not for_good:
            return Refusal(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} cannot be written now: {error}"
            )
        if self.failure is None:
            self.failure = error
            self.marks.remove()  # The kernel may have dropped what was written.
            for log in self.logs.values():
                log.abandon()
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline: {error}")

    @property
    def is_present(self) -> bool:
        """Whether the directory is there with its identity: neither removed nor unmounted."""
        return self.disk.exists(f"{self.path}/{META_PROPERTIES}")

    def check_space(self) -> None:
        """Look how much room is left; to be called every second or so."""
        self.is_full = self.disk.free_bytes(self.path) < self.reserve_bytes

    def refuse_if_unwritable(self) -> None:
        if self.failure is not None:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline: {self.failure}")
        if self.is_full:
            raise self._refusal_of_full_disk()

    def _refusal_of_full_disk(self) -> Refusal:
        return Refusal(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"the disk of {self.path} has less than its reserve of {self.reserve_bytes} bytes "
            "left: writes are refused until there is room",
        )
