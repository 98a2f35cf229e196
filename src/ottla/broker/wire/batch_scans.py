"""Scans of batches: at once while a loop turn's budget lasts, else in a worker, step by step.

One step runs at a time, and after each the worker rests as long as the step took: Python threads
share one lock, and the loop comes first. Few scans are begun at once, since each holds the unfolded
records of a batch. The order of batches belongs to the caller, who waits for the scan.
"""

import asyncio
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple

from ottla.env.workers import Workers
from ottla.model.types import Monotonic
from ottla.records.scan import BatchScan, Larger, ScanBudget

TURN_US: Final = 10_000  # Of the 50 ms that the bytes of a peer may take of the loop.
SCANS_MAX: Final = 4
# Small scans wait for a turn's budget and not for large ones; those of medium size begin beside
# the large ones, and take turns with them.
SMALL_US: Final = TURN_US // 2
SHARE_US_MIN: Final = 50
MEDIUM_US: Final = 20 * TURN_US
MEDIUM_BYTES: Final = 4 << 20
# A whole turn waits up to 10 seconds behind smaller shares.
PATIENCE: Final = 1000

CallSoon = Callable[[Callable[[], None]], object]


class _Turn(NamedTuple):
    """One that waits for its share of a turn; ordered by when it should get that."""

    due: float
    number: int
    us: int
    has_come: asyncio.Future[None]


class TurnBudget(ScanBudget):
    """The budget of the present loop turn, for all connections together.

    Those who wait are served by the time of their asking plus PATIENCE times what they ask for, so
    that small requests do not wait behind many large ones, and no request waits for ever.
    """

    __slots__ = ("_call_soon", "_now", "_number", "_waiting")

    def __init__(self, call_soon: CallSoon, now: Callable[[], Monotonic]) -> None:
        super().__init__(TURN_US)
        self._call_soon = call_soon
        self._now = now
        self._number = 0
        self._waiting: list[_Turn] = []  # A heap.

    def take(self, us: int) -> bool:
        if self.left_us == TURN_US:  # First use in this turn.
            self._call_soon(self._refill)
        return super().take(us)

    def take_share(self, us: int) -> bool:
        """Take so much, or all that a turn has; False if that has to wait, perhaps for others."""
        return not self._waiting and self.take(_share(us))

    async def wait(self, us: int) -> None:
        """Take so much, or all that a turn has, in a later turn if need be."""
        if self.take_share(us):
            return
        self._number += 1
        us = _share(us)
        due = self._now() + us * PATIENCE / 1000
        turn = _Turn(due, self._number, us, asyncio.get_running_loop().create_future())
        heappush(self._waiting, turn)
        await turn.has_come

    def _refill(self) -> None:
        self.left_us = TURN_US
        while self._waiting and (
            self._waiting[0].has_come.done()  # Cancelled.
            or self.take(self._waiting[0].us)
        ):
            turn = heappop(self._waiting)
            if not turn.has_come.done():
                turn.has_come.set_result(None)


def _share(us: int) -> int:
    return max(1, min(us, TURN_US))


class BatchScans:
    def __init__(self, workers: Workers, now: Callable[[], Monotonic], call_soon: CallSoon) -> None:
        self.budget = TurnBudget(call_soon, now)
        self._workers = workers
        self._now = now
        self._begun_large = asyncio.Semaphore(SCANS_MAX)
        self._begun_medium = asyncio.Semaphore(SCANS_MAX)
        self._step = asyncio.Lock()

    async def run(self, scan: BatchScan) -> None:
        """Do the whole scan; raises what it raises."""
        if not scan.run_within(self.budget):
            await self.finish(scan)

    async def finish(self, scan: BatchScan) -> None:
        """The same for a scan that was found to be beyond the budget."""
        us = max(scan.cost_us, SHARE_US_MIN)
        if us <= SMALL_US:
            await self.budget.wait(us)
            if self._ran_with(scan, us):
                return
        if scan.cost_us <= MEDIUM_US:
            async with self._begun_medium:
                try:
                    await self._run(scan.steps(MEDIUM_BYTES))
                except Larger:
                    pass
                else:
                    return
        async with self._begun_large:
            await self._run(scan.steps())

    def _ran_with(self, scan: BatchScan, share_us: int) -> bool:
        """Do the scan with a share of the turn, as much again, and what others left of it.

        A batch may unfold to more than its share was estimated from; if to much more, a worker
        does it. So a turn ends within twice its budget, whatever is in the batches.
        """
        budget = ScanBudget(min(2 * share_us + self.budget.left_us, SMALL_US))
        before_us = budget.left_us
        is_done = scan.run_within(budget)
        beyond_us = before_us - budget.left_us - 2 * share_us
        if beyond_us > 0:
            self.budget.take(beyond_us)
        return is_done

    async def _run(self, steps: Iterator[None]) -> None:
        while await self._went_on(steps):
            pass

    async def _went_on(self, steps: Iterator[None]) -> bool:
        async with self._step:
            begun = self._now()
            is_over = await self._workers.run(_step, steps)
            if not is_over:
                await asyncio.sleep((self._now() - begun) / 1000)
        return not is_over


def _step(steps: Iterator[None]) -> bool:
    """For a worker: True if that was the last step."""
    return next(steps, _OVER) is _OVER


_OVER: Final = object()
