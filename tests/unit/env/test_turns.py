"""How turns are measured, and how the work of a long one is named."""

import asyncio
import threading
import time

import pytest

from ottla.env.log_limit import LogLimit
from ottla.env.loop import DispatchLoop
from ottla.env.turns import BUCKET_SECONDS, WARN_SECONDS, Turns, TurnWatch


class Machine:
    """A clock, and what the kernel says of the thread's waiting for a core."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waited = 0.0
        self.turns = Turns(lambda: self.now, lambda: self.waited)

    def turn(self, seconds: float, waited: float = 0.0) -> None:
        self.turns.began()
        self.now += seconds
        self.waited += waited
        self.turns.ended()

    def counts(self) -> dict[float, int]:
        bounds = (*BUCKET_SECONDS, float("inf"))
        counts = self.turns.histogram().counts
        return {bound: count for bound, count in zip(bounds, counts, strict=True) if count}


def test_turns_are_counted_by_their_length() -> None:
    machine = Machine()
    for seconds in (0.0, 0.0005, 0.002, 0.03, 60.0):
        machine.turn(seconds)
    assert machine.counts() == {0.001: 2, 0.0025: 1, 0.05: 1, float("inf"): 1}
    assert machine.turns.histogram().sum == pytest.approx(60.0325)


def test_time_between_turns_is_not_counted() -> None:
    machine = Machine()
    machine.turns.ended()  # The first poll ends no turn.
    machine.turn(0.0)
    machine.now += 60
    machine.turn(0.0)
    assert machine.counts() == {0.001: 2}


def test_wait_for_a_core_is_no_part_of_a_turn(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    machine.turn(3.0, waited=2.998)
    assert machine.counts() == {0.0025: 1}
    assert not caplog.text


def test_wait_for_a_core_before_a_turn_is_not_subtracted_from_it() -> None:
    machine = Machine()
    machine.turn(0.0)
    machine.now += 10
    machine.waited += 10
    machine.turn(2.0)
    assert machine.counts() == {0.001: 1, 2.5: 1}


def test_long_turn_is_logged_with_its_work_and_no_more_than_one_in_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine()
    machine.turn(WARN_SECONDS)
    assert not caplog.text
    machine.turns.work["storage/log.py:1 read"] += 2
    machine.turns.work["storage/log.py:9 find"] += 1
    machine.turn(0.25)
    machine.turn(0.3)
    assert "took 250 ms" in caplog.text
    assert "storage/log.py:1 read" in caplog.text
    assert len(caplog.records) == 1
    machine.turn(20.0)
    assert "the work is unknown (1 more" in caplog.text


def test_watch_names_the_code_that_a_long_turn_runs(caplog: pytest.LogCaptureFixture) -> None:
    loop = DispatchLoop()
    turns = loop.selector.turns = Turns()
    watch = TurnWatch(turns, threading.get_ident())
    watch.start()

    def slow_clock() -> float:
        started = time.monotonic()
        while not turns.work or time.monotonic() < started + 2 * WARN_SECONDS:
            time.sleep(0.005)
        return started

    async def work() -> None:
        await asyncio.sleep(0)
        LogLimit(slow_clock).admits()  # Any code of ours will do.

    try:
        loop.run_until_complete(work())
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        watch.stop()
        loop.close()
    assert "a turn of the event loop took" in caplog.text
    assert "env/log_limit.py" in caplog.text
    assert "LogLimit.admits" in caplog.text
