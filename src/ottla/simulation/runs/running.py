"""Runs a simulated world to its end: on a loop of its own, with every error told.

What breaks a promise becomes a `Failure`, which says how to see it again.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from ottla.simulation.history.history import Violation
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.disk import Crashed
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.process import task_factory
from ottla.simulation.world.trace import Trace

CLOSES_MAX = 10


class Failure(Exception):
    """A run broke a promise: the seed with which it does so again, and what came before."""

    def __init__(self, plan: Plan, error: BaseException, trace: Trace, replay: str) -> None:
        last = "\n".join(list(trace.lines)[-30:])
        super().__init__(
            f"seed {plan.seed}: {error}\n  plan: {plan}\n  replay: {replay}\n"
            f"  the last events:\n{last}"
        )
        self.plan = plan
        self.reason = error


class RunnableWorld(Protocol):
    async def run(self, errors: list[BaseException]) -> None:
        """`errors` are what callbacks raise, and nobody catches."""

    def end(self) -> None: ...


def new_loop() -> VirtualLoop:
    loop = VirtualLoop()
    loop.set_task_factory(task_factory)  # type: ignore[arg-type]
    return loop


def run_world(
    world: RunnableWorld, plan: Plan, loop: VirtualLoop, trace: Trace, *, replay: str
) -> None:
    """Raises Failure if something happened that must not."""
    try:
        with _errors_collected(loop) as errors:
            try:
                loop.run_until_complete(world.run(errors))
            finally:
                world.end()
    except Exception as error:
        raise Failure(plan, _reason(error), trace, replay) from error
    finally:
        _close(loop)


def raise_first(errors: list[BaseException]) -> None:
    if errors:
        raise Violation(f"an error that nobody caught: {errors[0]!r}") from errors[0]


@contextlib.contextmanager
def _errors_collected(loop: VirtualLoop) -> Iterator[list[BaseException]]:
    """What callbacks raise, which asyncio would only log."""
    errors: list[BaseException] = []

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Crashed):
            return  # The process died there, as it was meant to.
        errors.append(error or Violation(str(context["message"])))

    loop.set_exception_handler(handle)
    yield errors


def _reason(error: BaseException) -> BaseException:
    """The first plain error inside of groups of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _close(loop: VirtualLoop) -> None:
    """End what is left without letting it run on."""
    loop.set_exception_handler(lambda *_: None)
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        work = task.get_coro()
        for _ in range(CLOSES_MAX):  # Whoever waits once more on the way out is told once more.
            with contextlib.suppress(BaseException):
                work.close()
                break
    loop.close()
