"""A log that begins: its directory, whose it is, and an empty first segment.

The files are made first, by whoever may block; they are found by their names alone, so a worker
may do it. They are synced with the first records, not before.
"""

from ottla.env.disk import Disk
from ottla.model.errors import Damaged
from ottla.model.types import TopicPartition, Uuid, WallTime
from ottla.storage.checkpoint import encode_partition_metadata, replace_file
from ottla.storage.config import LogConfig
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.files import LOG, PARTITION_METADATA, file_name
from ottla.storage.log import Log
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_state import Producers
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.sync_work import DirectoryToSync, PathToSync

FIRST_OFFSET = 0


def make_files(disk: Disk, path: str, topic_partition: TopicPartition, topic_id: Uuid) -> None:
    """In the log directory `path`; what is there already is left."""
    directory = f"{path}/{topic_partition}"
    disk.make_directory(directory)
    write_partition_metadata(disk, directory, topic_id, sync=False)
    disk.open(f"{directory}/{file_name(FIRST_OFFSET, LOG)}", create=True).close()


def write_partition_metadata(
    disk: Disk, directory: str, topic_id: Uuid, *, sync: bool = True
) -> None:
    """Which topic the partition directory belongs to, by id."""
    content = encode_partition_metadata(topic_id)
    replace_file(disk, f"{directory}/{PARTITION_METADATA}", content, sync=sync)


def open_new_log(
    open_files: OpenFiles,
    path: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    now: WallTime,
) -> Log:
    """The log whose files were just made. Damaged if there is more in them than that."""
    directory = f"{path}/{topic_partition}"
    disk = open_files.disk
    segment = Segment(
        open_files,
        directory,
        FIRST_OFFSET,
        created_ms=now,
        index_interval_bytes=config.index_interval_bytes,
    )
    segment.activate(disk.open(segment.log_path))
    if segment.size:
        raise Damaged(segment.log_path, 0, "a log that is new to this broker has records already")
    segment.reset()
    files = Segments(open_files, directory, [segment])
    files.sync_loaded([], is_new=True)
    log = Log(topic_partition, config, files, LeaderEpochs(), Producers(), is_clean=True)
    log.durability.sync_also(
        [
            PathToSync(disk, f"{directory}/{PARTITION_METADATA}"),
            DirectoryToSync(disk, directory),
            DirectoryToSync(disk, path),
        ]
    )
    return log
