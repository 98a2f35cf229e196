"""An asyncio loop in virtual time: instead of waiting for a timer it goes to the timer's moment.

Nothing comes from outside, so that the same program runs the same way each time; a moment when
nothing is left to wait for is a deadlock. Time is counted in whole nanoseconds.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeVarTuple

from ottla.simulation.world.process import PROCESS, Process

Ts = TypeVarTuple("Ts")

NANOSECONDS: Final = 1_000_000_000
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
TURNS_MAX: Final = 2_000_000  # A run that takes more goes round in circles.


class Deadlock(Exception):
    """Everybody waits, and nothing is left that could wake anybody."""


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.turns = 0
        self.turns_max = TURNS_MAX
        self.on_turn: Callable[[], None] = _nothing  # Called after each.
        self._clock_resolution = 1 / NANOSECONDS
        self._selector = self  # The base class asks it for events, and to wait.

    def time(self) -> float:
        return self.now_ns / NANOSECONDS

    def select(self, timeout: float | None) -> list[object]:
        """In place of waiting: time passes at once."""
        self.turns += 1
        self.on_turn()
        if self.turns > self.turns_max:
            raise Deadlock(f"{self.turns_max} turns have led to nothing")
        if timeout is None:
            raise Deadlock(f"nothing is left to happen after {self.now_ns} ns")
        if timeout > 0:
            self.now_ns += round(timeout * NANOSECONDS)
        return []

    def after(self, delay_ns: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call back in so many nanoseconds, whatever becomes of the process that asked for it."""
        super().call_at((self.now_ns + delay_ns) / NANOSECONDS, callback, *args)

    def timers_of(self, process: Process) -> int:
        """How many timers of a process are pending."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        owners = [one._context.get(PROCESS) for one in scheduled if not one.cancelled()]  # type: ignore[attr-defined]
        return owners.count(process)

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        handle = super().call_soon(_nothing, context=context)
        handle._callback = process.run  # type: ignore[attr-defined]
        handle._args = (callback, args, handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        handle = super().call_at(when, _nothing, context=context)
        handle._callback = process.run  # type: ignore[attr-defined]
        handle._args = (callback, args, handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: list[object]) -> None:
        assert not event_list, "nothing comes from outside"

    def _write_to_self(self) -> None:
        pass


def _nothing() -> None:
    pass
