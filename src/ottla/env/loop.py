"""An asyncio loop that hands socket events to their channels with as little as possible between.

`loop.add_reader` costs a handle, a context and a queue per event. Here the loop's own selector
calls the channel directly while it polls, and gives asyncio only what is asyncio's: timers,
tasks and wake-ups stay ordinary. After a poll the `after_dispatch` hook ends the turn; if a large
read came with it, after one more poll, so that requests sent meanwhile share the turn's writes.

A loop turn serves events for `SERVE_SECONDS`, measured by the clock. The events that are left over
come first in the next turn. Objects that have more to do ask to be called again: they are served
behind all events, round robin, and one of them at least in each turn.

A `Ready` object keeps the exceptions of its peer to itself. An exception that leaves `select` ends
`run_forever`, and so the process: it is a failed assert, or the hook's own.
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Final, Protocol

from ottla.env.turns import Turns

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
AGAIN: Final = 4  # No event of a socket: its object has asked to be called again.
# Of the 50 ms that peers may take of the loop. One event more may begin within it, and the flush,
# the sends and the tasks that were started come after it.
SERVE_SECONDS: Final = 0.015


Event = tuple[selectors.SelectorKey, int]


class Ready(Protocol):
    """A channel or listener: told directly when its socket can be read or written."""

    def ready(self, events: int) -> None:
        """Serve the events. Raises nothing but what must end the process."""


class Dispatching(selectors.BaseSelector):
    """A selector's `select` that dispatches; the descriptors are the next base class's."""

    def __init__(self) -> None:
        super().__init__()
        self.after_dispatch: Callable[[], None] = _nothing
        self.clock: Callable[[], float] = time.monotonic
        self.turns: Turns | None = None  # Measures the turns, where that is asked for.
        self.failure: Exception | None = None  # Raised by the next `select`: ends the loop.
        self.is_dispatching = False
        self.is_gathering = False  # Set by a channel that much was received from.
        self._late: list[Event] = []  # Events that the last turn had no time for.
        self._again: dict[Ready, None] = {}

    def serve_again(self, ready: Ready) -> None:
        """Call `ready` with AGAIN in a later turn, behind all that have asked for it before."""
        self._again[ready] = None

    @property
    def is_anyone_waiting(self) -> bool:
        return bool(self._late or self._again)

    def select(self, timeout: float | None = None) -> list[Event]:
        if self.failure is not None:
            raise self.failure
        is_anyone_waiting, turns = self._late or self._again, self.turns
        if turns is not None:
            turns.ended()
        events: list[Event] = super().select(0 if is_anyone_waiting else timeout)
        if turns is not None:
            turns.began()
        if is_anyone_waiting:
            events = self._with_waiting(events)
        self.is_dispatching = True
        turn_end = self.clock() + SERVE_SECONDS
        others = self._serve(events, turn_end)
        if self.is_gathering:
            self.is_gathering = False
            if not self._late:
                self._serve(super().select(0), turn_end)  # The next poll finds asyncio's again.
        if len(others) < len(events):
            self.after_dispatch()
        self.is_dispatching = False
        return others

    def _serve(self, events: list[Event], turn_end: float) -> list[Event]:
        """Serve events until the turn's time is over, one at least; returns asyncio's own."""
        others, late, clock, is_over = [], [], self.clock, False
        for event in events:
            data = event[0].data
            if type(data) is tuple:  # A pair of handles.
                others.append(event)
            elif is_over:
                late.append(event)
            else:
                data.ready(event[1])
                is_over = clock() >= turn_end
        if late:
            self._keep(late)
        return others

    def _with_waiting(self, events: list[Event]) -> list[Event]:
        """The late events before the new ones, and behind them who asked to be called again.

        One of those comes first: new events must not starve them.
        """
        late, self._late = self._late, []
        again, self._again = [_again(ready) for ready in self._again], {}
        known = {event[0].data for event in late}
        new = [event for event in events if event[0].data not in known]
        return [*again[:1], *late, *new, *again[1:]]

    def _keep(self, late: list[Event]) -> None:
        self._late = [event for event in late if event[1] != AGAIN]
        # Before those who have asked in this turn.
        self._again = {event[0].data: None for event in late if event[1] == AGAIN} | self._again


def _again(ready: Ready) -> Event:
    return selectors.SelectorKey(-1, -1, AGAIN, ready), AGAIN


class DispatchingSelector(Dispatching, selectors.DefaultSelector):
    """The kernel's descriptors."""


class DispatchLoop(asyncio.SelectorEventLoop):
    """A selector loop whose selector can be reached by the network."""

    def __init__(self) -> None:
        self.selector = DispatchingSelector()
        super().__init__(self.selector)


def _nothing() -> None:
    pass
