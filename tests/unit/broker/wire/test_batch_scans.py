import asyncio
from collections.abc import Callable, Iterator

import pytest

from ottla.broker.wire.batch_scans import (
    MEDIUM_BYTES,
    MEDIUM_US,
    PATIENCE,
    SCANS_MAX,
    TURN_US,
    BatchScans,
    TurnBudget,
)
from ottla.env.workers import Value
from ottla.model.types import Monotonic
from ottla.records.record import BadRecords
from ottla.records.record_spans import HEADERS_PAUSE_US, HEADERS_PER_PAUSE, RECORDS_PER_STEP
from ottla.records.scan import RECORD_US
from tests.unit.records.test_scan import Counting, bomb, header_bomb, make_batch

STEP_MS = 5


class Clock:
    """Moves with the work, and with the rests that the loop takes."""

    def __init__(self) -> None:
        self.worked_ms = 0

    def now(self) -> Monotonic:
        return Monotonic(self.worked_ms)


class Workers:
    """Counts what runs at the same time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at_once = self.at_once_max = self.steps = 0

    async def run(self, work: Callable[..., Value], *arguments: object) -> Value:
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(0)
        self._clock.worked_ms += STEP_MS
        self.steps += 1
        self.at_once -= 1
        return work(*arguments)

    def close(self) -> None:
        pass


def make_scans() -> tuple[BatchScans, Workers]:
    clock = Clock()
    workers = Workers(clock)
    return BatchScans(workers, clock.now, asyncio.get_running_loop().call_soon), workers


def test_the_budget_of_a_turn_is_there_again_in_the_next() -> None:
    async def spend() -> None:
        budget = TurnBudget(asyncio.get_running_loop().call_soon, lambda: Monotonic(0))
        assert budget.take(TURN_US - 1)
        assert not budget.take(2)
        await asyncio.sleep(0)
        assert budget.take(TURN_US)

    asyncio.run(spend())


def test_those_who_wait_for_the_budget_get_it_in_their_order() -> None:
    got: list[str] = []

    async def wait(budget: TurnBudget, name: str, us: int) -> None:
        await budget.wait(us)
        got.append(name)

    async def all_wait() -> None:
        budget = TurnBudget(asyncio.get_running_loop().call_soon, lambda: Monotonic(0))
        waits = [("a", TURN_US), ("b", 3 * TURN_US), ("c", 1), ("d", TURN_US)]
        await asyncio.gather(*(wait(budget, *each) for each in waits))

    asyncio.run(all_wait())
    assert got == ["a", "c", "b", "d"]


def test_a_large_share_is_not_passed_by_for_ever() -> None:
    got: list[str] = []

    async def wait(budget: TurnBudget, name: str, us: int) -> None:
        await budget.wait(us)
        got.append(name)

    async def all_wait() -> None:
        now = [0]
        budget = TurnBudget(asyncio.get_running_loop().call_soon, lambda: Monotonic(now[0]))
        budget.take(TURN_US)
        large = asyncio.ensure_future(wait(budget, "large", TURN_US))
        await asyncio.sleep(0)
        now[0] = PATIENCE * TURN_US // 1000
        small = asyncio.ensure_future(wait(budget, "small", 2))
        await asyncio.gather(large, small)

    asyncio.run(all_wait())
    assert got == ["large", "small"]


def test_a_small_share_does_not_wait_behind_large_ones_of_seconds_ago() -> None:
    got: list[str] = []

    async def wait(budget: TurnBudget, name: str, us: int) -> None:
        await budget.wait(us)
        got.append(name)

    async def all_wait() -> None:
        now = [0]
        budget = TurnBudget(asyncio.get_running_loop().call_soon, lambda: Monotonic(now[0]))
        budget.take(TURN_US)
        tasks = [asyncio.ensure_future(wait(budget, "large", TURN_US)) for _ in range(5)]
        await asyncio.sleep(0)
        now[0] = 5000
        tasks.append(asyncio.ensure_future(wait(budget, "small", TURN_US // 50)))
        await asyncio.gather(*tasks)

    asyncio.run(all_wait())
    assert got.index("small") == 2  # Two large shares were granted before.


def test_one_who_waits_no_longer_takes_nothing() -> None:
    async def run() -> None:
        budget = TurnBudget(asyncio.get_running_loop().call_soon, lambda: Monotonic(0))
        budget.take(TURN_US)
        gone = asyncio.ensure_future(budget.wait(TURN_US - 1))
        await asyncio.sleep(0)
        budget.take(TURN_US)
        other = asyncio.ensure_future(budget.wait(TURN_US))
        gone.cancel()
        await other

    asyncio.run(run())


def test_a_small_scan_needs_no_worker() -> None:
    async def run() -> int:
        scans, workers = make_scans()
        scan = Counting(make_batch(10))
        await scans.run(scan)
        assert workers.steps == 0
        return scan.count

    assert asyncio.run(run()) == 10


class Counted(Counting):
    """Counts the scans that hold an unfolded batch."""

    open_now = open_max = 0

    def _walk(self, data: bytes) -> Iterator[int]:
        Counted.open_now += 1
        Counted.open_max = max(Counted.open_max, Counted.open_now)
        yield from super()._walk(data)
        Counted.open_now -= 1


def test_large_scans_share_one_worker_and_few_are_begun() -> None:
    async def run() -> None:
        scans, workers = make_scans()
        made = [Counted(make_batch(4 * RECORDS_PER_STEP)) for _ in range(2 * SCANS_MAX)]
        await asyncio.gather(*map(scans.finish, made))
        assert workers.at_once_max == 1
        assert [scan.count for scan in made] == [4 * RECORDS_PER_STEP] * len(made)

    asyncio.run(run())
    assert 1 < Counted.open_max <= SCANS_MAX


def test_a_scan_that_fails_in_a_worker_fails_for_the_caller() -> None:
    class Failing(Counting):
        def _failed(self, failure: BadRecords) -> None:
            raise failure

    async def run() -> None:
        scans, _ = make_scans()
        batch = make_batch(3 * RECORDS_PER_STEP)
        batch.count += 1
        with pytest.raises(BadRecords):
            await scans.run(Failing(batch))

    asyncio.run(run())


def test_a_small_scan_and_a_medium_one_do_not_wait_for_many_large_ones() -> None:
    async def run() -> None:
        scans, _ = make_scans()
        ended: list[str] = []

        async def finish(name: str, scan: Counting) -> None:
            await scans.finish(scan)
            ended.append(name)

        large = MEDIUM_US // RECORD_US + 1
        made = [("large", Counting(make_batch(large), 64 << 20)) for _ in range(2 * SCANS_MAX)]
        made += [("medium", Counting(make_batch(5000))), ("small", Counting(make_batch(100)))]
        await asyncio.gather(*(finish(*each) for each in made))
        assert ended[:2] == ["small", "medium"]
        assert all(scan.count == scan.batch.count for _, scan in made)

    asyncio.run(run())


def test_a_scan_that_unfolds_to_more_than_its_records_tell_is_a_large_one() -> None:
    async def run() -> None:
        scans, workers = make_scans()
        scan = Counting(bomb(2 * MEDIUM_BYTES, 4), 64 << 20)
        await scans.finish(scan)
        assert (scan.count, scan.failure) == (1, None)
        assert workers.steps > 0

    asyncio.run(run())


def test_small_batches_of_many_headers_do_not_share_a_turn_that_they_have_not_paid_for() -> None:
    async def run() -> None:
        scans, workers = make_scans()
        # Each would fit into a turn, by its header very many of them.
        batch = header_bomb(TURN_US // 3 // HEADERS_PAUSE_US * HEADERS_PER_PAUSE)
        made = [Counting(batch) for _ in range(20)]
        await asyncio.gather(*map(scans.run, made))
        assert all(scan.count == 1 for scan in made)
        assert workers.steps >= 10  # The rest had what was left of a turn.

    asyncio.run(run())
