import asyncio

from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.process import Process, task_factory


def test_a_killed_process_does_not_go_on_in_any_way() -> None:
    done = []

    async def child() -> None:
        try:
            await asyncio.sleep(2)
            done.append("child")
        finally:
            done.append("cleanup")

    async def victim() -> None:
        asyncio.get_running_loop().call_later(2, done.append, "timer")
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            done.append("started")
            await asyncio.sleep(10)

    async def world() -> None:
        process = Process("victim")
        process.on_killed.append(lambda: done.append("killed"))
        process.start(victim())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(100)
        assert done == ["started", "killed"]
        process.bury()

    run(world())


def test_others_live_on_when_one_is_killed() -> None:
    done = []

    async def work(name: str) -> None:
        await asyncio.sleep(5)
        done.append(name)

    async def world() -> None:
        first, second = Process("first"), Process("second")
        first.start(work("first"))
        task = second.start(work("second"))
        await asyncio.sleep(1)
        first.kill()
        await task
        first.bury()

    run(world())
    assert done == ["second"]


def test_a_paused_process_does_later_what_was_due_in_the_order_in_which_it_was() -> None:
    done: list[tuple[str, float]] = []
    loop_time = lambda: asyncio.get_running_loop().time()  # noqa: E731

    async def work() -> None:
        loop = asyncio.get_running_loop()
        cancelled = loop.call_later(3, done.append, ("cancelled", 0.0))
        loop.call_later(2, cancelled.cancel)
        await asyncio.sleep(2.5)
        done.append(("slept", loop_time()))
        await asyncio.sleep(1)
        done.append(("slept again", loop_time()))

    async def world() -> None:
        process = Process("sleeper")
        task = process.start(work())
        await asyncio.sleep(1)
        process.pause()
        await asyncio.sleep(9)
        assert done == []
        process.resume()
        await task

    run(world())
    assert done == [("slept", 10.0), ("slept again", 11.0)]


def test_a_paused_process_can_be_killed() -> None:
    async def world() -> None:
        process = Process("sleeper")
        process.start(asyncio.sleep(1))
        await asyncio.sleep(0)
        process.pause()
        await asyncio.sleep(2)
        process.kill()
        await asyncio.sleep(2)
        process.bury()

    run(world())


def test_a_coroutine_that_will_not_end_is_buried_all_the_same() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(10)

    async def world() -> None:
        process = Process("stubborn")
        process.start(stubborn())
        await asyncio.sleep(1)
        process.kill()
        process.bury()

    run(world())


def run(work) -> None:  # noqa: ANN001
    loop = VirtualLoop()
    loop.set_task_factory(task_factory)
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()
