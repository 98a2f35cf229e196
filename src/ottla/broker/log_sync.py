"""Group commit: logs whose bytes must reach the disk, synced in a worker, one round at a time.

A round syncs all that was asked for since the last one began; while it runs, the loop goes on and
the next round's partitions gather. Only here are logs synced while the broker runs, so that no
recovery point can overtake a file that another sync still works on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ottla.broker.partition import Partition
from ottla.env.workers import Workers
from ottla.storage.log import Log
from ottla.storage.syncing import sync_all

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class LogSync:
    def __init__(
        self, workers: Workers, spawn: Spawn, failed: Callable[[Log, OSError], bool]
    ) -> None:
        """`failed` says whether what failed may be tried again."""
        self._workers = workers
        self._spawn = spawn
        self._failed = failed
        self._pending: dict[Partition, None] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def soon(self, partition: Partition) -> None:
        self._pending[partition] = None
        if self._idle.is_set():
            self._idle.clear()
            self._spawn(self._run())

    async def all(self, partitions: Iterable[Partition]) -> None:
        """Sync these, and whatever else is asked for meanwhile."""
        for partition in partitions:
            self.soon(partition)
        await self._idle.wait()

    async def _run(self) -> None:
        try:
            while self._pending:
                partitions, self._pending = self._pending, {}
                for partition in partitions:
                    await self._sync(partition)
        finally:
            self._idle.set()

    async def _sync(self, partition: Partition) -> None:
        log = partition.log
        end_offset = log.end_offset
        work = log.unsynced_files()
        try:
            if work:
                await self._workers.run(sync_all, work)
        except OSError as error:
            if self._failed(log, error):
                log.sync_also(work)  # With the next round.
            partition.not_committed()
            return
        log.synced_to(end_offset)
        partition.committed(end_offset)
