"""An asyncio loop that hands socket events to their channels with as little as possible between.

`loop.add_reader` costs a handle, a context and a queue per event. Here the loop's own selector
calls the channel directly while it polls, and gives asyncio only what is asyncio's: timers,
tasks and wake-ups stay ordinary. After a poll the `after_dispatch` hook ends the turn; if a large
read came with it, after one more poll, so that requests sent meanwhile share the turn's writes.

A `Ready` object keeps the exceptions of its peer to itself. An exception that leaves `select` ends
`run_forever`, and so the process: it is a failed assert, or the hook's own.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Protocol

from ottla.env.turns import Turns

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Ready(Protocol):
    """A channel or listener: told directly when its socket can be read or written."""

    def ready(self, events: int) -> None:
        """Serve the events. Raises nothing but what must end the process."""


class Dispatching(selectors.BaseSelector):
    """A selector's `select` that dispatches; the descriptors are the next base class's."""

    def __init__(self) -> None:
        super().__init__()
        self.after_dispatch: Callable[[], None] = _nothing
        self.turns: Turns | None = None  # Measures the turns, where that is asked for.
        self.failure: Exception | None = None  # Raised by the next `select`: ends the loop.
        self.is_dispatching = False
        self.is_gathering = False  # Set by a channel that much was received from.

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.failure is not None:
            raise self.failure
        others = []
        turns = self.turns
        if turns is None:
            events: list[tuple[Any, int]] = super().select(timeout)
        else:
            turns.ended()
            events = super().select(timeout)
            turns.began()
        self.is_dispatching = True
        for event in events:
            data = event[0].data
            if type(data) is tuple:  # asyncio's own: a pair of handles.
                others.append(event)
            else:
                data.ready(event[1])
        if self.is_gathering:
            self._dispatch_others()
        if len(others) < len(events):
            self.after_dispatch()
        self.is_dispatching = False
        return others

    def _dispatch_others(self) -> None:
        """Serve sockets that became ready since; asyncio's are found again by the next poll."""
        for key, events in super().select(0):
            if type(key.data) is not tuple:
                key.data.ready(events)
        self.is_gathering = False


class DispatchingSelector(Dispatching, selectors.DefaultSelector):
    """The kernel's descriptors."""


class DispatchLoop(asyncio.SelectorEventLoop):
    """A selector loop whose selector can be reached by the network."""

    def __init__(self) -> None:
        self.selector = DispatchingSelector()
        super().__init__(self.selector)


def _nothing() -> None:
    pass
