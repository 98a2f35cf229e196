import asyncio
from random import Random

import pytest

from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.workers import SimulatedWorkers


def test_work_takes_time_and_is_done_within_it() -> None:
    loop = VirtualLoop()
    moments: list[int] = []

    async def world() -> None:
        workers = SimulatedWorkers(Random(1))
        for _ in range(20):
            start = loop.now_ns
            await workers.run(lambda: moments.append(loop.now_ns))
            assert start <= moments[-1] <= loop.now_ns
            assert loop.now_ns > start
        workers.close()

    loop.run_until_complete(world())
    loop.close()
    assert len(moments) == 20


def test_others_go_on_while_work_is_done() -> None:
    loop = VirtualLoop()
    order: list[str] = []

    async def world() -> None:
        workers = SimulatedWorkers(Random(1))
        work = asyncio.create_task(workers.run(order.append, "work"))
        await asyncio.sleep(0)
        order.append("others")
        await work

    loop.run_until_complete(world())
    loop.close()
    assert order == ["others", "work"]


def test_what_work_raises_reaches_who_asked_for_it() -> None:
    loop = VirtualLoop()

    def fail() -> None:
        raise OSError("sick")

    async def world() -> None:
        with pytest.raises(OSError, match="sick"):
            await SimulatedWorkers(Random(1)).run(fail)

    loop.run_until_complete(world())
    loop.close()
