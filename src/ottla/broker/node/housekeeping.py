"""What a broker does from time to time: retention, checkpoints, idle connections, free space."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ottla.broker.liveness.context import LivenessContext
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.wire.connections import Connections
from ottla.model.errors import Damaged
from ottla.storage.retention import delete_old_segments

if TYPE_CHECKING:
    from ottla.model.types import Millis

logger = logging.getLogger(__name__)

IDLE_CHECK_MS = 10_000
IDLE_CHECK_MS_MIN = 100
DISK_CHECK_MS = 1_000
LOOK_BYTES_MIN = 1 << 20
RESERVE_PARTS = 4  # No more than one of these comes in between two looks at the free space.
SNAPSHOT_CHECK_MS = 60_000
SNAPSHOT_CHECK_MS_MIN = 1_000
LOOKED_AT_TOGETHER = 32  # Logs in one loop turn.
SYNCED_TOGETHER = 8  # Logs, before those that somebody waits for have their turn.
DELETED_CHECK_MS = 1_000  # What was deleted frees its disk when its delay is over.


class Housekeeping:
    def __init__(
        self,
        context: LivenessContext,
        connections: Connections,
        partitions: Partitions,
        directories: LogDirectories,
        metrics: Metrics,
    ) -> None:
        self._context = context
        self._connections = connections
        self._partitions = partitions
        self._directories = directories
        self._metrics = metrics
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._bytes_in_seen = 0  # When the free space was last looked at.

    def start(self) -> None:
        settings = self._context.settings
        delay_ms = settings.log_initial_task_delay_ms
        idle_ms = max(settings.connections_max_idle_ms // 10, IDLE_CHECK_MS_MIN)
        self._every(min(idle_ms, IDLE_CHECK_MS), self._close_idle)
        self._every(DISK_CHECK_MS, self._check_space)
        self._every_task(DELETED_CHECK_MS, self._remove_deleted)
        snapshot_ms = max(settings.metadata_log_max_snapshot_interval_ms, SNAPSHOT_CHECK_MS_MIN)
        self._every_task(min(snapshot_ms, SNAPSHOT_CHECK_MS), self._snapshot_metadata)
        self._every_task(settings.log_retention_check_interval_ms, self._retain, delay_ms)
        self._every_task(
            settings.log_flush_offset_checkpoint_interval_ms, self._sync_and_checkpoint, delay_ms
        )
        self._every_task(
            settings.log_flush_start_offset_checkpoint_interval_ms,
            self._partitions.checkpoint,
            delay_ms,
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
            self._timers[work] = self._context.call_later(interval_ms, run)
            work()

        first_ms = interval_ms if delay_ms is None else delay_ms
        self._timers[work] = self._context.call_later(first_ms, run)

    def _every_task(
        self,
        interval_ms: "Millis",
        work: Callable[[], Coroutine[Any, Any, None]],
        delay_ms: "Millis | None" = None,
    ) -> None:
        """The same for work that waits, for the disk above all; it never runs twice at a time."""
        is_running = False

        async def run() -> None:
            nonlocal is_running
            try:
                await work()
            finally:
                is_running = False

        def begin() -> None:
            nonlocal is_running
            if not is_running:
                is_running = True
                self._context.spawn(run())

        self._every(interval_ms, begin, delay_ms)

    def _close_idle(self) -> None:
        self._connections.close_idle()

    def flushed(self) -> None:
        """Look at the free space early if so much came in that the reserve is at stake."""
        new_bytes = self._metrics.bytes_in - self._bytes_in_seen
        reserve_bytes = self._context.settings.ottla_disk_reserve_bytes
        if new_bytes > max(reserve_bytes // RESERVE_PARTS, LOOK_BYTES_MIN):
            self._check_space()

    def _check_space(self) -> None:
        self._bytes_in_seen = self._metrics.bytes_in
        self._directories.check_space()
        self._partitions.host_homeless()

    async def _retain(self) -> None:
        now = self._context.env.clock.wall()
        for count, partition in enumerate(self._partitions.all()):
            if count % LOOKED_AT_TOGETHER == 0:
                await asyncio.sleep(0)
            try:
                for step in delete_old_segments(partition.log, now, partition.high_watermark):
                    await self._context.env.workers.run(step.sync)
            except (OSError, Damaged) as error:
                self._partitions.read_failed(partition, error)

    async def _remove_deleted(self) -> None:
        await self._directories.remove_deleted(self._context.env.clock.wall())

    async def _snapshot_metadata(self) -> None:
        """A snapshot may be due by time, though nothing is decided that would bring it about."""
        await self._context.quorum.commits.snapshot_if_due()

    async def _sync_and_checkpoint(self) -> None:
        """Sync what was sealed or is due, in a worker, then write down how far that is."""
        partitions = self._partitions
        unsynced = [p for p in partitions.all() if p.log.is_unsynced]
        for start in range(0, len(unsynced), SYNCED_TOGETHER):  # Those that clients wait for go on.
            await partitions.sync.all(unsynced[start : start + SYNCED_TOGETHER])
        await self._partitions.checkpoint()

    def _note_high_watermarks(self) -> None:
        for directory in self._directories.online():
            self._partitions.checkpoints.note_high_watermarks(directory)

    def _expire_producers(self) -> None:
        now = self._context.env.clock.wall()
        for partition in self._partitions.all():
            log = partition.log
            log.producers.expire(now, log.config.producer_id_expiration_ms)
