"""A poll over simulated sockets, under the dispatching of the real one.

It is level-triggered, as epoll is in the real selector: a socket is reported for as long as it is
ready. A change of a socket wakes the process that has registered it.
"""

import selectors
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from ottla.env.loop import Dispatching, Ready
from ottla.simulation.world.sockets import SimulatedListener, SimulatedSocket

Polled = SimulatedSocket | SimulatedListener

# Some tens of small requests are a connection's slice of a turn, and some hundreds a turn.
LOOK_SECONDS: Final = 0.00005

# ruff: noqa: ANN401  A selector's data is of any type.


class SimulatedDescriptors(selectors.BaseSelector):
    def __init__(self) -> None:
        self.on_ready: Callable[[], None] = _nothing
        self._keys: dict[Polled, selectors.SelectorKey] = {}
        self._candidates: dict[Polled, None] = {}  # Perhaps ready, in the order of their changes.

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        assert fileobj not in self._keys, "a descriptor is registered once"
        assert fileobj.fileno() >= 0, "a closed descriptor is not registered"
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, fileobj.fileno(), events, data)
        self.changed(fileobj)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        self._candidates.pop(fileobj, None)
        return self._keys.pop(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = self._keys[fileobj]._replace(events=events, data=data)
        self.changed(fileobj)
        return key

    def select(self, _timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready ones; never waits, since the virtual loop does."""
        found = []
        for polled in list(self._candidates):
            key = self._keys[polled]
            events = key.events & polled.ready_events()
            if events:
                found.append((key, events))
            else:
                del self._candidates[polled]
        return found

    def changed(self, polled: Polled) -> None:
        """A socket may be ready for something that it was not ready for."""
        key = self._keys.get(polled)
        if key is not None and key.events & polled.ready_events():
            self._candidates[polled] = None
            self.on_ready()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class SimulatedSelector(Dispatching, SimulatedDescriptors):
    """One process's selector. Its clock charges the same time between any two looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = lambda: next(self._looks) * LOOK_SECONDS
        self._looks = count()

    def serve_again(self, ready: Ready) -> None:
        super().serve_again(ready)
        self.on_ready()

    @property
    def is_poll_due(self) -> bool:
        return bool(self._candidates) or self.is_anyone_waiting


def _nothing() -> None:
    pass
