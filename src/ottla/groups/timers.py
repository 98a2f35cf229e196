"""Deadlines by key: set anew at every heartbeat, so that setting must cost next to nothing."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from ottla.model.types import Monotonic


class TimerKey(NamedTuple):
    kind: str
    group_id: str
    member_id: str = ""


class Timers:
    """A deadline that moves later leaves its old place in the heap, and is found out there."""

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, Monotonic] = {}
        self._heap: list[tuple[Monotonic, TimerKey]] = []
        self._queued: dict[TimerKey, Monotonic] = {}  # The earliest place of each in the heap.

    def set(self, key: TimerKey, deadline: Monotonic) -> None:
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._queued[key] = deadline
            heappush(self._heap, (deadline, key))

    def cancel(self, key: TimerKey) -> None:
        self._deadlines.pop(key, None)

    def is_set(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def due(self, now: Monotonic) -> Iterator[TimerKey]:
        """Every key whose time has come, earliest first; it is set no more."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            queued, key = heappop(heap)
            if self._queued.get(key) != queued:
                continue  # An earlier place of it took over.
            del self._queued[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline > now:
                self.set(key, deadline)
            else:
                del self._deadlines[key]
                yield key

    def next_deadline(self) -> Monotonic | None:
        """Never later than the next deadline; it may be earlier than that."""
        return self._heap[0][0] if self._heap else None
