import asyncio

import pytest

from ottla.simulation.world.loop import Deadlock, VirtualLoop


def run(work, loop=None):  # noqa: ANN001, ANN201
    loop = loop or VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def test_an_hour_passes_at_once() -> None:
    loop = VirtualLoop()
    run(asyncio.sleep(3600), loop)
    assert loop.now_ns == 3600 * 10**9
    assert loop.turns < 10


def test_timers_fire_in_the_order_of_their_moments() -> None:
    fired = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for moment in (30, 10, 20):
            loop.call_later(moment, fired.append, moment)
        await asyncio.sleep(100)

    run(work())
    assert fired == [10, 20, 30]


def test_timeouts_work_in_virtual_time() -> None:
    async def work() -> None:
        async with asyncio.timeout(60):
            await asyncio.Event().wait()

    loop = VirtualLoop()
    with pytest.raises(TimeoutError):
        run(work(), loop)
    assert loop.now_ns == 60 * 10**9


def test_waiting_for_nothing_is_a_deadlock_and_not_a_hang() -> None:
    loop = VirtualLoop()
    task = loop.create_task(asyncio.Event().wait())
    with pytest.raises(Deadlock):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        run(task, loop)


def test_delays_are_exact_to_the_nanosecond_after_years() -> None:
    loop = VirtualLoop()
    moments = []

    async def work() -> None:
        await asyncio.sleep(86_400 * 30)
        loop.after(1_001, lambda: moments.append(loop.now_ns))
        await asyncio.sleep(1)

    run(work(), loop)
    assert abs(moments[0] - (86_400 * 30 * 10**9 + 1_001)) < 1_000
