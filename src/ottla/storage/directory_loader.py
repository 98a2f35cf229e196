"""Opens the logs of a log directory at a start, recovering them after a crash.

A log that is damaged is named in `LogDirectory.damaged`, and the others are opened. Calls block.
"""

from collections.abc import Callable

from ottla.env.disk import Disk
from ottla.env.errnos import FULL
from ottla.model.errors import Damaged
from ottla.model.types import TopicPartition, Uuid, WallTime
from ottla.storage.checkpoint import decode_partition_metadata
from ottla.storage.config import LogConfig
from ottla.storage.directory import METADATA_TOPIC, LogDirectory
from ottla.storage.directory_names import DirectoryKind, parse_directory_name
from ottla.storage.existing_log import open_log
from ottla.storage.files import PARTITION_METADATA
from ottla.storage.hosted_replicas import read_hosted, write_hosted
from ottla.storage.log import Log
from ottla.storage.recovery import Progress


def load_logs(
    directory: LogDirectory,
    config_of: Callable[[str], LogConfig],
    now: WallTime,
    progress: Progress | None = None,
) -> None:
    """Open every partition in it, recovering after a crash; `__cluster_metadata` is not one.

    That log, if it is stored here, has to be open before: when this returns, the directory counts
    as recovered.
    """
    disk, path = directory.disk, directory.path
    directory.marks.begin()
    if not directory.marks.was_clean:
        # A killed process may have created logs whose names it had not synced.
        disk.sync_directory(path)
    directory.hosted = read_hosted(disk, path)
    for name in disk.list(path):
        if not disk.is_directory(f"{path}/{name}"):
            continue
        kind, topic_partition = parse_directory_name(name)
        if kind is DirectoryKind.DELETE:
            directory.delete_at_once(f"{path}/{name}", now)
        elif topic_partition is None or kind is not DirectoryKind.PARTITION:
            directory.notices.append(f"{path}/{name} is no partition of this broker: left as is")
        elif topic_partition.topic != METADATA_TOPIC:
            config = config_of(topic_partition.topic)
            try:
                load_log(directory, topic_partition, config, now, progress=progress)
            except Damaged as damage:
                directory.damaged[topic_partition] = damage
    _note_recovered(directory)


def load_log(
    directory: LogDirectory,
    topic_partition: TopicPartition,
    config: LogConfig,
    now: WallTime,
    *,
    progress: Progress | None = None,
) -> Log:
    """Open one partition's directory, as clean or unclean as this log directory was left."""
    path = f"{directory.path}/{topic_partition}"
    checkpoints, marks = directory.checkpoints, directory.marks
    topic_id = _read_topic_id(directory.disk, path, is_clean=marks.was_clean)
    log = open_log(
        directory.disk,
        path,
        topic_partition,
        config,
        recovery_point=checkpoints.recovery_points.get(topic_partition, 0),
        log_start_offset=checkpoints.log_starts.get(topic_partition, 0),
        compacted_to=checkpoints.cleaned.get(topic_partition, 0),
        clean=marks.was_clean and topic_partition.topic != METADATA_TOPIC,
        now=now,
        progress=progress,
        power_lost=marks.power_was_lost,
        open_files=directory.open_files,
    )
    log.high_watermark = checkpoints.high_watermarks.get(topic_partition, 0)
    if log.end_offset < log.high_watermark and not marks.power_was_lost:
        log.abandon()
        raise Damaged(
            path,
            0,
            f"the log ends at offset {log.end_offset}, though all below "
            f"{log.high_watermark} was committed and no power was lost",
        )
    log.high_watermark = min(log.high_watermark, log.end_offset)
    directory.logs[topic_partition] = log
    if topic_id is not None:
        directory.topic_ids[topic_partition] = topic_id
    return log


def _note_recovered(directory: LogDirectory) -> None:
    """Only after all: a process killed while recovering from a power loss must notice it again."""
    try:
        if directory.marks.power_was_lost:
            _forget_lost(directory)
        directory.marks.note_recovered()
    except OSError as error:
        if error.errno not in FULL:  # Without it, the next start takes more care than it needs.
            raise


def _forget_lost(directory: LogDirectory) -> None:
    """What a loss of power may take is not missing: no start after a kill must say so."""
    here = {(topic_id, name.partition) for name, topic_id in directory.topic_ids.items()}
    if not directory.hosted <= here:
        directory.hosted &= here
        write_hosted(directory.disk, directory.path, directory.hosted)
    marks = directory.checkpoints.high_watermarks
    lower = {name: log.high_watermark for name, log in directory.logs.items() if name in marks}
    draft = directory.checkpoints.draft_high_watermarks(marks | lower)
    if draft is not None:
        draft.write()


def _read_topic_id(disk: Disk, directory: str, *, is_clean: bool) -> Uuid | None:
    path = f"{directory}/{PARTITION_METADATA}"
    if not disk.exists(path):
        return None
    try:
        return decode_partition_metadata(path, disk.read(path))
    except Damaged:
        if is_clean:
            raise
        return None  # Not synced before the crash; the cluster's metadata still knows it.
