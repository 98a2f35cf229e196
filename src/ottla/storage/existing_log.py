"""Opens the log of a partition directory: what `Loader` finds in it, as a `Log`."""

from ottla.env.disk import Disk
from ottla.model.types import Offset, TopicPartition, WallTime
from ottla.storage.config import LogConfig
from ottla.storage.loader import Loader
from ottla.storage.log import Log
from ottla.storage.open_files import OpenFiles
from ottla.storage.recovery import Progress
from ottla.storage.segments import Segments


def open_log(
    disk: Disk,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    recovery_point: Offset = 0,
    log_start_offset: Offset = 0,
    compacted_to: Offset = 0,
    clean: bool,
    now: WallTime,
    progress: Progress | None = None,
    power_lost: bool = False,
    open_files: OpenFiles | None = None,
) -> Log:
    """Open a partition directory, perhaps an empty one; Damaged if its content was never written.

    `power_lost` says that the machine restarted since: then what was not synced may be gone in any
    order, and a hole past the recovery point is no damage. Below `compacted_to` gaps between
    segments are no holes.
    """
    files = open_files if open_files is not None else OpenFiles(disk)
    loader = Loader(files, directory, config, now, power_lost=power_lost, progress=progress)
    loaded = loader.load(
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        compacted_to=compacted_to,
    )
    segments = Segments(files, directory, loaded.segments)
    segments.sync_loaded(loaded.recovered, is_new=loaded.is_new)
    log = Log(topic_partition, config, segments, loaded.epochs, loaded.producers, is_clean=clean)
    log.log_start_offset = max(log.log_start_offset, log_start_offset)
    if not clean:
        log.recovery_point = min(recovery_point, log.end_offset)
    return log
