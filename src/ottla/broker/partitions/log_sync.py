"""Group commit: logs whose bytes must reach the disk, synced in a worker, one log at a time.

Logs are synced in the order in which they were first asked for; while one is, the loop goes on and
what is appended to the others gathers. Only here are logs synced while the broker runs, so that no
recovery point can overtake a file that another sync still works on.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any

from ottla.broker.partitions.partition import Partition
from ottla.env.workers import Workers
from ottla.model.types import TopicPartition
from ottla.storage.log import Log
from ottla.storage.sync_work import Syncable, sync_all

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class LogSync:
    def __init__(
        self, workers: Workers, spawn: Spawn, failed: Callable[[Log, OSError], bool]
    ) -> None:
        """`failed` says whether what failed may be tried again."""
        self._workers = workers
        self._spawn = spawn
        self._failed = failed
        # An event, if somebody waits for this one.
        self._pending: dict[Partition, asyncio.Event | None] = {}
        self._is_running = False
        self._syncing: asyncio.Task[None] | None = None
        self._name: TopicPartition | None = None  # Of the log that is synced now.
        self._unnamed: dict[Log, None] = {}  # Whose first segment's name is to be synced.
        self._is_naming = False
        self._naming: asyncio.Task[None] | None = None

    def soon(self, partition: Partition) -> None:
        self._pending.setdefault(partition, None)
        if not self._is_running:
            self._is_running = True
            self._spawn(self._run())

    def name_soon(self, log: Log) -> None:
        """Sync the first segment's name of a new log: else its first roll does, on the loop."""
        if log.durability.first_name_to_sync() is None:
            return
        self._unnamed[log] = None
        if not self._is_naming:
            self._is_naming = True
            self._spawn(self._sync_names())

    async def _sync_names(self) -> None:
        """One by one, and beside the logs that clients wait for."""
        try:
            while self._unnamed:
                log = next(iter(self._unnamed))
                del self._unnamed[log]
                name = log.durability.first_name_to_sync()
                if name is not None:
                    self._naming = asyncio.create_task(self._sync_name(log, name))
                    await asyncio.shield(self._naming)
        finally:
            self._is_naming = False

    async def _sync_name(self, log: Log, name: Syncable) -> None:
        try:
            await self._workers.run(name.sync)
        except OSError as error:
            self._failed(log, error)
        else:
            log.durability.first_name_synced()

    async def all(self, partitions: Iterable[Partition]) -> None:
        """Sync these. Does not wait for logs that others ask for meanwhile."""
        for event in [self._event(partition) for partition in partitions]:
            await event.wait()

    async def wait_idle(self) -> None:
        """Wait for the syncs that began: a stop is clean only if nothing is left to them."""
        for task in (self._syncing, self._naming):
            if task is not None:
                await asyncio.wait([task])

    def is_busy_with(self, name: TopicPartition) -> bool:
        """True while a worker syncs a log of that name, perhaps a deleted one.

        The worker writes by paths: another log of the name must not begin before it is done.
        """
        return name == self._name

    async def wait_done_with(self, names: Collection[TopicPartition]) -> None:
        while self._name in names:
            await self.wait_idle()

    def _event(self, partition: Partition) -> asyncio.Event:
        self.soon(partition)
        event = self._pending[partition]
        if event is None:
            event = self._pending[partition] = asyncio.Event()
        return event

    async def _run(self) -> None:
        try:
            while self._pending:
                partition = next(iter(self._pending))
                event = self._pending.pop(partition)
                # A worker that began goes on though this task is cancelled.
                self._name = partition.name
                self._syncing = asyncio.create_task(self._sync(partition))
                await asyncio.shield(self._syncing)
                if event is not None:
                    event.set()
        finally:
            self._is_running = False

    async def _sync(self, partition: Partition) -> None:
        try:
            if not partition.log.is_abandoned:
                await self._sync_log(partition)
        finally:
            self._name = None

    async def _sync_log(self, partition: Partition) -> None:
        log = partition.log
        end_offset = log.end_offset
        work = log.durability.begin_sync(end_offset)
        try:
            if work:
                await self._workers.run(sync_all, work)
        except OSError as error:
            if self._failed(log, error):
                log.durability.sync_also(work)  # With the next round.
            partition.not_committed()
            return
        log.durability.synced_to(end_offset)
        partition.committed(end_offset)
