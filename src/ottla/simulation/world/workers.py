"""Workers in virtual time: work takes a while, and the loop goes on meanwhile.

A share of the work runs in one piece at some moment within its time; the rest is advanced from disk
operation to disk operation, with turns of the loop in between. Works end in any order.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import ClassVar, TypeVar

from ottla.env.workers import WORKERS_MAX
from ottla.simulation.world.stepped_work import SteppedWork

Value = TypeVar("Value")

SECONDS_MEAN = 0.002
STEPPED_SHARE = 0.2


class SimulatedWorkers:
    is_at_work: ClassVar = False  # The code that runs now is some worker's and not the loop's.

    def __init__(self, source: Random) -> None:
        self._random = source
        self._free = asyncio.Semaphore(WORKERS_MAX)

    async def run(self, work: Callable[..., Value], *arguments: object) -> Value:
        async with self._free:
            seconds = self._random.expovariate(1 / SECONDS_MEAN)
            before = self._random.random() * seconds
            await asyncio.sleep(before)
            if self._random.random() < STEPPED_SHARE:
                return await self._run_stepped(SteppedWork(work, arguments))
            try:
                return self._at_work(lambda: work(*arguments))
            finally:
                await asyncio.sleep(seconds - before)

    async def _run_stepped(self, stepped: SteppedWork[Value]) -> Value:
        # As a thread does, the work goes on when the task that waits for it is cancelled.
        await asyncio.shield(asyncio.get_running_loop().create_task(self._advance(stepped)))
        return stepped.result()

    async def _advance(self, stepped: SteppedWork[Value]) -> None:
        try:
            while not self._at_work(stepped.advance):  # noqa: ASYNC110  The time is the work's.
                await asyncio.sleep(self._random.expovariate(1 / SECONDS_MEAN))
        finally:
            self._at_work(stepped.abandon)

    def _at_work(self, work: Callable[[], Value]) -> Value:
        SimulatedWorkers.is_at_work = True
        try:
            return work()
        finally:
            SimulatedWorkers.is_at_work = False

    def close(self) -> None:
        pass
