"""Workers: threads in production, inline in tests."""

import asyncio
import threading

import pytest

from ottla.env.workers import WORKERS_MAX, InlineWorkers, ThreadWorkers


def test_the_loop_runs_while_worker_threads_work() -> None:
    async def run() -> None:
        workers = ThreadWorkers()
        free = threading.Event()
        waiting = asyncio.ensure_future(workers.run(free.wait, 10))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert await workers.run(lambda a, b: (a + b, threading.current_thread().name), 1, 2) == (
            3,
            "ottla-worker_1",
        )
        free.set()
        assert await waiting
        workers.close()

    asyncio.run(run())


def test_an_exception_of_a_worker_is_raised_to_the_caller() -> None:
    async def run() -> None:
        for workers in (ThreadWorkers(), InlineWorkers()):
            with pytest.raises(ZeroDivisionError):
                await workers.run(lambda: 1 // 0)
            workers.close()

    asyncio.run(run())


def test_an_idle_pool_has_no_threads() -> None:
    before = threading.active_count()
    workers = ThreadWorkers()
    assert threading.active_count() == before
    workers.close()


def test_the_pool_is_bounded() -> None:
    async def run() -> None:
        workers = ThreadWorkers()
        names = await asyncio.gather(
            *(workers.run(lambda: threading.current_thread().name) for _ in range(50))
        )
        assert len(set(names)) <= WORKERS_MAX
        workers.close()

    asyncio.run(run())


def test_inline_work_lets_other_tasks_run_first() -> None:
    async def run() -> None:
        events: list[str] = []
        workers = InlineWorkers()
        working = asyncio.ensure_future(workers.run(events.append, "work"))
        await asyncio.sleep(0)
        events.append("others")
        await working
        assert events == ["others", "work"]
        workers.close()

    asyncio.run(run())
