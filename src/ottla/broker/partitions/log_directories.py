"""All log directories of a broker: which log is where, which of them failed, which are full.

A new log goes to the directory with the fewest. A directory that cannot be opened or fails later is
offline with its partitions while the others serve on; the one with the metadata log is needed.
`replica_loader` opens the logs at a start.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from ottla.broker.partitions.directory_identities import DirectoryIdentities
from ottla.broker.settings.settings import Settings
from ottla.env.environment import Environment
from ottla.env.errnos import PASSING, SHORT
from ottla.metadata.image.cluster import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Millis, Offset, TopicPartition, Uuid, WallTime, uuid_text
from ottla.storage.config import LogConfig
from ottla.storage.deletion import remove_paths
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log
from ottla.storage.new_log import make_files
from ottla.storage.sync_work import NotWritten

logger = logging.getLogger(__name__)

Failed = Callable[[str, OSError], None]


class NoRoom(Refusal):
    """There is no room for a new log now, but there may be later."""


class LogDirectories:
    def __init__(self, settings: Settings, env: Environment, failed: Failed) -> None:
        self.is_any_full = False
        self._settings = settings
        self._env = env
        self._failed = failed
        self._metadata_path = settings.metadata_log_dir
        self._directories: dict[str, LogDirectory] = {}
        self._unopened: dict[str, OSError] = {}
        self.identities = DirectoryIdentities(self._directories, settings)

    def open(self) -> None:
        """Take every directory for this process; DirectoryRefused or OSError if that cannot be."""
        try:
            for path in dict.fromkeys([self._metadata_path, *self._settings.log_dirs]):
                self._open(path)
            self.identities.check()
        except BaseException:
            self.abandon()
            raise

    def sync_loaded(self, is_synced: Callable[[str], bool]) -> None:
        """What a crash left in the page cache: names of first segments, so that no roll has to.

        Of topics that are synced before each reply the records too. Blocks: no client is served
        yet, and from here on others count on it.
        """
        for directory in self.online():
            for name, log in directory.logs.items():
                if log.recovery_point < log.end_offset and is_synced(name.topic):
                    self.attempt(directory, log.sync)
                else:
                    self.attempt(directory, partial(_sync_first_name, log))

    def is_absent(self, name: TopicPartition) -> bool:
        """Whether a log of that name would have to be made."""
        return all(name not in d.logs and name not in d.damaged for d in self.online())

    def log(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        now: WallTime,
        *,
        is_new: bool,
        may_replace: bool = False,
        where: Uuid = UNASSIGNED_DIRECTORY,
    ) -> Log:
        """The log of a partition, created if there is none; raises why it cannot be had.

        One that is damaged is deleted if it `may_replace` it: others have all that it had. The
        cluster knows that it lies in the directory `where`.
        """
        for directory in self.online():
            if name in directory.damaged:
                if not may_replace:
                    raise directory.damaged[name]
                logger.warning("%s/%s is damaged, and fetched anew", directory.path, name)
                self._delete(directory, name, now, config.file_delete_delay_ms)
            log = directory.logs.get(name)
            if log is not None:
                log.config = config
                return log
        if not is_new and (self._unopened or any(d.failure for d in self._directories.values())):
            # It may lie in the directory that failed: an empty log must not take its place.
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "a log directory is offline")
        if not is_new and self.is_lost(where):
            raise Refusal(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the log directory that holds it ({uuid_text(where)}) is none of this broker's",
            )
        return self._create(name, topic_id, config, now)

    def _create(
        self, name: TopicPartition, topic_id: Uuid, config: LogConfig, now: WallTime
    ) -> Log:
        """A new log in the directory with the fewest; if that fails, in the next one."""
        refusal = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        if self.is_stale(name):
            refusal = NoRoom(refusal.code, "a deleted log of this name is in a checkpoint")
        for directory in self._candidates(name):
            try:
                return directory.create_log(name, topic_id, config, now)
            except OSError as error:
                refusal = self.refusal(directory, error)
                if error.errno in PASSING:
                    refusal = NoRoom(refusal.code, refusal.message)
                try:  # Renamed only: a worker removes it, with other deleted logs.
                    directory.discard(name, self._env.random.randbytes(16), now)
                except OSError:
                    break  # A log elsewhere would have an empty twin here.
        raise refusal

    def _candidates(self, name: TopicPartition) -> list[LogDirectory]:
        """Where a new log may lie: where its files are made already, else where the fewest are.

        Not where a checkpoint may still name a deleted one: a crash would find this one damaged.
        """
        usable = [
            directory
            for directory in self.online()
            if directory.path in self._settings.log_dirs
            and not directory.checkpoints.is_stale(name)
        ]
        return sorted(
            usable, key=lambda d: (name not in d.made, d.is_full, len(d.logs) + len(d.made))
        )

    async def make_files(self, names: Mapping[TopicPartition, Uuid]) -> None:
        """Have a worker make what new logs need. What fails in it is met again at `log`."""
        chosen: list[tuple[LogDirectory, TopicPartition, Uuid]] = []
        for name, topic_id in names.items():
            for directory in self._candidates(name)[:1]:
                directory.made[name] = None
                chosen.append((directory, name, topic_id))
        made = await self._env.workers.run(_make_files, chosen)
        for directory, name, topic_id in chosen[:made]:
            directory.made[name] = topic_id

    async def remove_unused(self) -> None:
        """Of what was made, whatever is no log now: its topic was deleted meanwhile."""
        for directory in self.online():
            made, directory.made = directory.made, {}
            if made:
                paths = [f"{directory.path}/{name}" for name in made]
                await self._env.workers.run(self._remove_remains, paths)

    def _remove_remains(self, paths: list[str]) -> None:
        with suppress(OSError):
            remove_paths(self._env.disk, paths)

    def delete(self, name: TopicPartition, topic_id: Uuid) -> list[LogDirectory]:
        """Rename a deleted topic's log away; its files go after `file.delete.delay.ms`.

        Returns where there was one: its checkpoint has to be written.
        """
        changed: list[LogDirectory] = []
        now = self._env.clock.wall()
        for directory in self.online():
            if directory.topic_ids.get(name) != topic_id:
                continue
            log = directory.logs.get(name)
            self._delete(directory, name, now, log.config.file_delete_delay_ms if log else 0)
            changed.append(directory)
        return changed

    def _delete(
        self, directory: LogDirectory, name: TopicPartition, now: WallTime, delay_ms: Millis
    ) -> None:
        try:
            directory.delete_log(name, self._env.random.randbytes(16), now, delay_ms)
        except OSError as error:
            # Whatever bears the same name next must not find what is left of this one.
            self.fail(directory, error)

    def of(self, log: Log) -> LogDirectory:
        return self._directories[log.directory.rpartition("/")[0]]

    def online(self) -> list[LogDirectory]:
        return [d for d in self._directories.values() if d.failure is None]

    def all(self) -> list[LogDirectory]:
        return list(self._directories.values())

    def unopened(self) -> list[str]:
        return list(self._unopened)

    def is_needed(self, path: str) -> bool:
        """Whether the broker cannot go on without this directory, now that it failed."""
        usable = [d for d in self.online() if d.path in self._settings.log_dirs]
        return path == self._metadata_path or not usable

    def is_lost(self, directory_id: Uuid) -> bool:
        """Whether a replica that the cluster knows to lie there cannot be had."""
        if directory_id in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return False
        return all(not d.meta or d.meta.directory_id != directory_id for d in self.online())

    def note_broker_epoch(self, broker_epoch: int) -> None:
        for directory in self.online():
            self.attempt(directory, partial(directory.marks.note_broker_epoch, broker_epoch))

    def write_failed(self, log: Log, error: OSError) -> None:
        self.refusal(self.of(log), error)

    def take_offline(self, log: Log, error: OSError) -> None:
        """Whatever the error is: only the next start can tell what the files of the log are."""
        self.fail(self.of(log), error)

    def sync_failed(self, log: Log, error: OSError) -> bool:
        """Whether to try again. Not if the kernel may have dropped pages, even for lack of room."""
        if isinstance(error, NotWritten) or error.errno in SHORT:
            self.write_failed(log, error)
            return True
        self.fail(self.of(log), error)
        return False

    def check_space(self) -> None:
        for directory in self.online():
            was_full = directory.is_full
            self.attempt(directory, directory.check_space)
            if directory.failure is not None:
                continue
            if directory.is_full and not was_full:
                logger.error("the disk of %s is nearly full: writes are refused", directory.path)
            elif was_full and not directory.is_full:
                logger.info("the disk of %s has room again", directory.path)
        self._note_full()

    def is_stale(self, name: TopicPartition) -> bool:
        """Whether a checkpoint may still name a deleted log of that name."""
        return any(d.checkpoints.is_stale(name) for d in self.online())

    async def remove_deleted(self, now: WallTime) -> None:
        """Have a worker remove what was deleted long enough ago: partitions, and segments."""
        for directory in self.online():
            paths = directory.take_deleted(now)
            try:
                if paths:
                    await self._env.workers.run(remove_paths, self._env.disk, paths)
            except OSError as error:
                directory.put_off(paths, now)  # After a shortage, the next round goes on.
                self.refusal(directory, error)

    def close(self, broker_epoch: int, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        for directory in self._directories.values():
            marks = marks_of(directory, high_watermarks)
            try:
                directory.close(broker_epoch, marks)
            except (OSError, Damaged) as error:
                logger.error("%s is not closed cleanly: %s", directory.path, error)
                directory.abandon()

    def abandon(self) -> None:
        for directory in self._directories.values():
            directory.abandon()

    def _open(self, path: str) -> None:
        try:
            directory = LogDirectory.open(
                self._env.disk,
                path,
                node_id=self._settings.node_id,
                reserve_bytes=self._settings.ottla_disk_reserve_bytes,
            )
        except OSError as error:
            if path == self._metadata_path or error.errno in SHORT:
                raise
            logger.error("the log directory %s is offline: %s", path, error)
            self._unopened[path] = error
            return
        self._directories[path] = directory

    def refusal(self, directory: LogDirectory, error: OSError) -> Refusal:
        """What to answer after `error`; all but a shortage takes the directory offline."""
        if error.errno not in PASSING:
            self.fail(directory, error)
        refusal = directory.failed(error)
        self._note_full()
        return refusal

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take the directory offline, with its logs."""
        if directory.failure is not None:
            return
        logger.error("the log directory %s is offline: %s", directory.path, error)
        directory.failed(error, for_good=True)
        self._failed(directory.path, error)

    def attempt(self, directory: LogDirectory, work: Callable[[], None]) -> None:
        """Do `work` in the directory; an OSError counts as one of the directory."""
        try:
            work()
        except OSError as error:
            self.refusal(directory, error)

    def _note_full(self) -> None:
        self.is_any_full = any(directory.is_full for directory in self.online())


def marks_of(
    directory: LogDirectory, hosted: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """High watermarks of its logs; those that no partition serves now keep their last one.

    So do damaged ones: it may be all that shows that something is missing.
    """
    marks = {name: hosted.get(name, log.high_watermark) for name, log in directory.logs.items()}
    last = directory.checkpoints.high_watermarks
    return {name: last[name] for name in directory.damaged if name in last} | marks


def _sync_first_name(log: Log) -> None:
    name = log.durability.first_name_to_sync()
    if name is not None:
        name.sync()
        log.durability.first_name_synced()


def _make_files(chosen: Sequence[tuple[LogDirectory, TopicPartition, Uuid]]) -> int:
    """For a worker: how many could be made, before the first that could not."""
    for count, (directory, name, topic_id) in enumerate(chosen):
        try:
            make_files(directory.disk, directory.path, name, topic_id)
        except OSError:
            return count
    return len(chosen)
