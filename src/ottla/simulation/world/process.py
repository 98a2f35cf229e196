"""A simulated process: code that shares the loop with others, and can be killed at any moment.

Whatever a process starts (tasks, timers, callbacks) inherits its context, and the loop asks the
process before running any of it. So a killed process simply does not go on: no `finally`, no
`except`, no farewell, as with kill -9.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol, TypeVar, cast

Value = TypeVar("Value")

# ruff: noqa: ANN401  Callbacks and their arguments are of any type.

CLOSE_ATTEMPTS_MAX = 8


class VirtualTime(Protocol):
    """The part of the virtual loop that a process needs."""

    now_ns: int

    def after(self, delay_ns: int, callback: Callable[[], object]) -> None: ...


class Process:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.killed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_killed: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._held: list[tuple[Callable[..., Any], tuple[Any, ...], asyncio.Handle | None]] = []
        self._is_stopped = False
        self._busy_until_ns = 0
        self.turns = 0  # Counts callbacks, each of which runs without interruption.
        self._time = cast(VirtualTime, asyncio.get_running_loop())
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    def run(
        self, callback: Callable[..., Any], args: tuple[Any, ...], handle: asyncio.Handle
    ) -> None:
        """The loop's turn for `handle` has come."""
        handle._args = ()  # It holds itself.
        if self.is_paused:
            # A callback that was held before keeps its first handle, which may be cancelled.
            self._held.append(args if callback is _run_late else (callback, args, handle))
        elif self.is_alive:
            self.turns += 1
            callback(*args)

    @property
    def is_paused(self) -> bool:
        """Nothing of it runs now: it was stopped, or a blocking call has not returned yet."""
        return self._is_stopped or self._busy_until_ns > 0

    def charge(self, nanoseconds: int) -> None:
        """A blocking call on the loop took so long: everything else of this process waits."""
        if not self._busy_until_ns:
            self._busy_until_ns = self._time.now_ns
            self._time.after(nanoseconds, self._call_returned)
        self._busy_until_ns += nanoseconds

    def _call_returned(self) -> None:
        left_ns = self._busy_until_ns - self._time.now_ns
        if left_ns > 0:
            self._time.after(left_ns, self._call_returned)
        else:
            self._busy_until_ns = 0
            self._release()

    def call(self, callback: Callable[..., Value], *args: Any) -> Value:
        """Do something as this process, now."""
        assert self.is_alive, "a dead process does nothing"
        self.turns += 1
        return self._context.run(callback, *args)

    def call_on_resume(self, callback: Callable[..., Any], *args: Any) -> None:
        self._held.append((callback, args, None))

    def pause(self) -> None:
        """As SIGSTOP: nothing of it runs, and all events for it wait."""
        self._is_stopped = True

    def resume(self) -> None:
        """All that was due meanwhile happens now, in the order in which it was due."""
        self._is_stopped = False
        self._release()

    def _release(self) -> None:
        if self.is_paused or not self.is_alive:
            return
        held, self._held = self._held, []
        loop = asyncio.get_running_loop()
        for callback, args, handle in held:
            context = self._context if handle is None else handle._context  # type: ignore[attr-defined]
            loop.call_soon(_run_late, callback, args, handle, context=context)

    def start(self, work: Coroutine[Any, Any, Value]) -> "asyncio.Task[Value]":
        loop = asyncio.get_running_loop()
        return loop.create_task(work, name=self.name, context=self._context)

    def started(self, task: "asyncio.Task[Any]") -> None:
        """The loop made a task for this process."""
        self._tasks.append(task)
        if len(self._tasks) > 256:
            self._tasks = [task for task in self._tasks if not task.done()]

    @property
    def tasks(self) -> int:
        """How many of its tasks have not ended."""
        return sum(1 for task in self._tasks if not task.done())

    def kill(self) -> None:
        if not self.is_alive:
            return
        self.is_alive = self._is_stopped = False
        self._busy_until_ns = 0
        self._held.clear()
        self.killed.set_result(None)
        for callback in self.on_killed:
            callback()

    def bury(self) -> None:
        """Take apart what a killed process left, when nothing can hear it any more."""
        assert not self.is_alive, "only the dead are buried"
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            work = task.get_coro()
            assert work is not None, "an unfinished task has its coroutine"
            for _ in range(CLOSE_ATTEMPTS_MAX):
                with suppress(BaseException):  # What it still tries to do cannot succeed.
                    self._context.run(work.close)
                    break
        self._tasks.clear()


def _run_late(
    callback: Callable[..., Any], args: tuple[Any, ...], handle: asyncio.Handle | None
) -> None:
    if handle is None or not handle.cancelled():
        callback(*args)


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)


def task_factory(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Value],
    *,
    context: Context | None = None,
    name: str | None = None,
) -> "asyncio.Task[Value]":
    """Make a task that its process knows of."""
    task = asyncio.Task(work, loop=loop, context=context, name=name)
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is not None:
        process.started(task)
    return task
