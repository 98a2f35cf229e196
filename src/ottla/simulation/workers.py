"""Workers in virtual time: work takes a while, and others go on meanwhile."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import TypeVar

Value = TypeVar("Value")

SECONDS_MEAN = 0.002


class SimulatedWorkers:
    """Work is done at some moment within its time: what happens later in it comes too late."""

    def __init__(self, source: Random) -> None:
        self._random = source

    async def run(self, work: Callable[..., Value], *arguments: object) -> Value:
        seconds = self._random.expovariate(1 / SECONDS_MEAN)
        before = self._random.random() * seconds
        await asyncio.sleep(before)
        try:
            return work(*arguments)
        finally:
            await asyncio.sleep(seconds - before)

    def close(self) -> None:
        pass
