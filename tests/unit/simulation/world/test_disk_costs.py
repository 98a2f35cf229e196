import asyncio
from random import Random

from ottla.simulation.world.disk_costs import SLOW_CALLS_PER_TURN_MAX, DiskCosts
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.process import Process, task_factory
from ottla.simulation.world.workers import SimulatedWorkers

FACTOR = 1000  # Makes a sync half a second on average.


def test_a_call_on_the_loop_keeps_its_process_waiting_and_no_other() -> None:
    woken: dict[str, float] = {}

    async def sleep(name: str) -> None:
        await asyncio.sleep(0.001)
        woken[name] = asyncio.get_running_loop().time()

    async def block(costs: DiskCosts) -> None:
        costs.began("sync", "/file")

    async def world() -> None:
        costs = DiskCosts(Random(1), FACTOR, lambda: True)
        busy, idle = Process("busy"), Process("idle")
        tasks = [busy.start(sleep("busy")), idle.start(sleep("idle"))]
        await busy.start(block(costs))
        await asyncio.gather(*tasks)

    run(world())
    assert woken["idle"] == 0.001
    assert woken["busy"] > 0.01


def test_slow_calls_of_one_turn_beyond_the_bound_are_noted() -> None:
    costs = DiskCosts(Random(1), 1, lambda: True)

    async def block(calls: int) -> None:
        for number in range(calls):
            costs.began("remove", f"/file-{number}")

    async def world() -> None:
        process = Process("broker")
        await process.start(block(SLOW_CALLS_PER_TURN_MAX))
        assert not costs.long_turns
        await process.start(block(SLOW_CALLS_PER_TURN_MAX + 3))

    run(world())
    assert len(costs.long_turns) == 1
    assert "broker: remove /file-0, remove /file-1" in costs.long_turns[0]


def test_a_checker_and_a_broker_that_starts_may_call_as_often_as_they_like() -> None:
    costs = DiskCosts(Random(1), 1, lambda: False)

    async def block() -> None:
        for _ in range(100):
            costs.began("sync", "/file")

    async def world() -> None:
        await block()
        await Process("broker").start(block())

    run(world())
    assert not costs.long_turns


def test_calls_of_a_worker_cost_the_loop_nothing() -> None:
    costs = DiskCosts(Random(1), FACTOR, lambda: True)
    moments: list[float] = []

    def work() -> None:
        for _ in range(20):
            costs.began("sync", "/file")

    async def ticks() -> None:
        for _ in range(100):
            await asyncio.sleep(0.001)
            moments.append(asyncio.get_running_loop().time())

    async def world() -> None:
        process, workers = Process("broker"), SimulatedWorkers(Random(3))
        ticking = process.start(ticks())
        await asyncio.gather(*(process.start(workers.run(work)) for _ in range(10)))
        await ticking

    run(world())
    assert not costs.long_turns
    assert moments[-1] < 0.11


def run(work) -> None:  # noqa: ANN001
    loop = VirtualLoop()
    loop.set_task_factory(task_factory)
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()
