"""What a broker does from time to time: retention, checkpoints, idle connections, free space."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.server import Broker
    from ottla.model.types import Millis

logger = logging.getLogger(__name__)

IDLE_CHECK_MS = 10_000
IDLE_CHECK_MS_MIN = 100
DISK_CHECK_MS = 1_000
LOOK_BYTES_MIN = 1 << 20
RESERVE_PARTS = 4  # No more than one of these comes in between two looks at the free space.
SNAPSHOT_CHECK_MS = 60_000
SNAPSHOT_CHECK_MS_MIN = 1_000
DELETED_CHECK_MS = 1_000  # What was deleted frees its disk when its delay is over.


class Housekeeping:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._bytes_in_seen = 0  # When the free space was last looked at.

    def start(self) -> None:
        broker, settings = self._broker, self._broker.settings
        delay_ms = settings.log_initial_task_delay_ms
        idle_ms = max(settings.connections_max_idle_ms // 10, IDLE_CHECK_MS_MIN)
        self._every(min(idle_ms, IDLE_CHECK_MS), self._close_idle)
        self._every(DISK_CHECK_MS, self._check_space)
        self._every(DELETED_CHECK_MS, self._remove_deleted)
        snapshot_ms = max(settings.metadata_log_max_snapshot_interval_ms, SNAPSHOT_CHECK_MS_MIN)
        self._every(min(snapshot_ms, SNAPSHOT_CHECK_MS), self._snapshot_metadata)
        self._every(settings.log_retention_check_interval_ms, self._retain, delay_ms)
        self._every(settings.log_flush_offset_checkpoint_interval_ms, self._sync, delay_ms)
        self._every(
            settings.log_flush_start_offset_checkpoint_interval_ms, broker.checkpoint, delay_ms
        )
        self._every(
            settings.replica_high_watermark_checkpoint_interval_ms, self._note_high_watermarks
        )
        self._every(settings.producer_id_expiration_check_interval_ms, self._expire_producers)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _every(
        self, interval_ms: "Millis", work: Callable[[], None], delay_ms: "Millis | None" = None
    ) -> None:
        def run() -> None:
            self._timers[work] = self._broker.call_later(interval_ms, run)
            work()

        first_ms = interval_ms if delay_ms is None else delay_ms
        self._timers[work] = self._broker.call_later(first_ms, run)

    def _close_idle(self) -> None:
        self._broker.connections.close_idle()
        self._broker.partitions.flush_soon()  # The memory of some lets others go on.

    def flushed(self) -> None:
        """Look at the free space early if so much came in that the reserve is at stake."""
        broker = self._broker
        new_bytes = broker.metrics.bytes_in - self._bytes_in_seen
        reserve_bytes = broker.settings.ottla_disk_reserve_bytes
        if new_bytes > max(reserve_bytes // RESERVE_PARTS, LOOK_BYTES_MIN):
            self._check_space()

    def _check_space(self) -> None:
        self._bytes_in_seen = self._broker.metrics.bytes_in
        self._broker.directories.check_space()
        self._broker.partitions.host_homeless()

    def _retain(self) -> None:
        now = self._broker.env.clock.wall()
        directories = self._broker.directories
        for partition in self._broker.partitions.all():
            if directories.of(partition.log).failure is not None:
                continue  # It failed while we went through the others.
            try:
                partition.log.delete_old_segments(now, partition.high_watermark)
            except OSError as error:
                directories.write_failed(partition.log, error)

    def _remove_deleted(self) -> None:
        self._broker.directories.remove_deleted(self._broker.env.clock.wall())

    def _snapshot_metadata(self) -> None:
        """A snapshot may be due by time, though nothing is decided that would bring it about."""
        self._broker.spawn(self._broker.quorum.snapshot_if_due())

    def _sync(self) -> None:
        self._broker.spawn(self._sync_and_checkpoint())

    async def _sync_and_checkpoint(self) -> None:
        """Sync what was sealed or is due, in a worker, then write down how far that is."""
        partitions = self._broker.partitions
        await partitions.sync.all(p for p in partitions.all() if p.log.is_unsynced)
        self._broker.checkpoint()

    def _note_high_watermarks(self) -> None:
        broker = self._broker
        broker.directories.note_high_watermarks(broker.partitions.high_watermarks())

    def _expire_producers(self) -> None:
        now = self._broker.env.clock.wall()
        for partition in self._broker.partitions.all():
            partition.log.expire_producers(now)
