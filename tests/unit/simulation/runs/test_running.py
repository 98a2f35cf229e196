import asyncio

import pytest

from ottla.simulation.history.history import Violation
from ottla.simulation.runs.running import Failure, new_loop, raise_first, run_world
from ottla.simulation.world.trace import Trace
from tests.unit.simulation.small import small_plan


class World:
    def __init__(self) -> None:
        self.has_ended = False

    async def run(self, errors: list[BaseException]) -> None:
        def fail() -> None:
            raise KeyError("nobody hears this")

        asyncio.get_running_loop().call_later(1, fail)
        await asyncio.sleep(2)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look(errors))

    async def _look(self, errors: list[BaseException]) -> None:
        raise_first(errors)

    def end(self) -> None:
        self.has_ended = True


def test_what_nobody_caught_fails_the_run_by_its_own_name() -> None:
    loop, world = new_loop(), World()
    trace = Trace(lambda: loop.now_ns)
    trace.note("something")
    with pytest.raises(Failure, match="nobody hears this") as failure:
        run_world(world, small_plan(), loop, trace, replay="do it again")
    assert isinstance(failure.value.reason, Violation)
    assert "do it again" in str(failure.value)
    assert "something" in str(failure.value)
    assert world.has_ended
    assert loop.is_closed()


def test_no_error_is_no_failure() -> None:
    raise_first([])
