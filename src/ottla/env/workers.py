"""Worker threads for blocking work, so that the loop never waits for a disk.

A worker gets values, sealed files or its own descriptors and returns a value: only the loop changes
a broker's state.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

Value = TypeVar("Value")

WORKERS_MAX = 4


class Workers(Protocol):
    async def run(self, work: Callable[..., Value], *arguments: object) -> Value: ...
    def close(self) -> None: ...


class ThreadWorkers:
    """Threads start with the first work, so that an idle broker has none."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS_MAX, thread_name_prefix="ottla-worker")

    async def run(self, work: Callable[..., Value], *arguments: object) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    def close(self) -> None:
        self._pool.shutdown(wait=True)


class InlineWorkers:
    """Runs work at once on the loop: for tests that drive a broker by hand."""

    async def run(self, work: Callable[..., Value], *arguments: object) -> Value:
        await asyncio.sleep(0)  # Other tasks may run before the work, as with threads.
        return work(*arguments)

    def close(self) -> None:
        pass
