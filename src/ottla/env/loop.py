"""An asyncio loop that hands socket events to their channels with as little as possible between.

`loop.add_reader` costs a handle, a context and a queue per event. Here the loop's own selector
calls the channel directly while it polls, and gives asyncio only what is asyncio's: timers,
tasks and wake-ups stay ordinary. After a poll the `after_dispatch` hook ends the turn; if much came
with it, after one more poll, since whoever has sent something meanwhile can share in the writes.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Protocol

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Ready(Protocol):
    """A channel or listener: told directly when its socket can be read or written."""

    def ready(self, events: int) -> None: ...


class DispatchingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.after_dispatch: Callable[[], None] = _nothing
        self.is_dispatching = False
        self.is_gathering = False  # Set by a channel that much was received from.

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        others = []
        events: list[tuple[Any, int]] = super().select(timeout)
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
        """Whoever became ready since; asyncio's own are found again by the next poll."""
        for key, events in super().select(0):
            if type(key.data) is not tuple:
                key.data.ready(events)
        self.is_gathering = False


class DispatchLoop(asyncio.SelectorEventLoop):
    """A selector loop whose selector can be reached by the network."""

    def __init__(self) -> None:
        self.selector = DispatchingSelector()
        super().__init__(self.selector)


def _nothing() -> None:
    pass
