"""Creates the directory `__cluster_metadata-0` and opens the log in it. Blocking.

Synced records are never truncated here: `Damaged` names the file and the position and ends the
start of the node.
"""

from typing import Final

from ottla.broker.controller.metadata_log_settings import MetadataLogSettings
from ottla.env.disk import Disk
from ottla.metadata.image.cluster import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.model.errors import Damaged
from ottla.model.types import Offset, TopicPartition, WallTime
from ottla.storage.checkpoint import (
    decode_partition_metadata,
    encode_partition_metadata,
    replace_file,
)
from ottla.storage.existing_log import open_log
from ottla.storage.log import Log

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)


def prepare_directory(disk: Disk, settings: MetadataLogSettings) -> None:
    """Create the directory and its `partition.metadata`; Damaged if it names another topic."""
    if not disk.is_directory(settings.directory):
        disk.make_directory(settings.directory)
        disk.sync_directory(settings.log_dir)
    path = f"{settings.directory}/partition.metadata"
    if not disk.exists(path):
        replace_file(disk, path, encode_partition_metadata(METADATA_TOPIC_ID))
    elif decode_partition_metadata(path, disk.read(path)) != METADATA_TOPIC_ID:
        raise Damaged(path, 0, "another topic's id: this is not a metadata log")


def open_synced_log(disk: Disk, settings: MetadataLogSettings, start: Offset, now: WallTime) -> Log:
    """Open the log and sync it. `start` is the end offset of the newest snapshot, 0 without one.

    Damaged if the log starts beyond `start`, because the records between are lost.
    """
    log = open_log(
        disk,
        settings.directory,
        METADATA_PARTITION,
        settings.log_config,
        recovery_point=0,
        log_start_offset=0,
        clean=False,
        now=now,
    )
    log.sync()  # After a process crash its end may be in the page cache only, and it counts.
    disk.sync_directory(settings.directory)  # The first segment may be new.
    if log.end_offset < start:
        log.start_at(start)  # The snapshot holds every record of the log.
    if log.log_start_offset > start:
        raise Damaged(
            settings.directory,
            0,
            f"the log begins at offset {log.log_start_offset}, but no snapshot holds "
            f"what lies between {start} and it",
        )
    return log
