"""Requests to other nodes: one of each kind at a time, and a growing delay after failures."""

from typing import Any

from ottla.model.types import Monotonic, NodeId
from ottla.quorum.timing import Timing

Key = tuple[NodeId, type]  # The node, and the kind of request.


class Outbox:
    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._under_way: dict[Key, Any] = {}
        self._retry_at: dict[Key, Monotonic] = {}
        self._failures: dict[Key, int] = {}

    def sent(self, to: NodeId, request: Any) -> None:  # noqa: ANN401
        self._under_way[to, type(request)] = request

    def answered(self, to: NodeId, request: Any) -> bool:  # noqa: ANN401
        """False if the request is not under way any more."""
        if not self._taken(to, request):
            return False
        self._failures.pop((to, type(request)), None)
        return True

    def failed(self, to: NodeId, request: Any, now: Monotonic) -> bool:  # noqa: ANN401
        """False if the request is not under way any more; else it may be sent again later."""
        if not self._taken(to, request):
            return False
        self.retry_later(to, type(request), now)
        return True

    def retry_later(self, to: NodeId, kind: type, now: Monotonic) -> None:
        failures = self._failures[to, kind] = self._failures.get((to, kind), -1) + 1
        self._retry_at[to, kind] = Monotonic(now + self._timing.retry(failures))

    def is_busy(self, to: NodeId, kind: type, now: Monotonic) -> bool:
        key = (to, kind)
        return key in self._under_way or self._retry_at.get(key, 0) > now

    def is_waiting(self, to: NodeId, kind: type) -> bool:
        """Whether something else than the clock will say when to send it next."""
        return (to, kind) in self._under_way or (to, kind) in self._retry_at

    def deadlines(self) -> list[Monotonic]:
        return list(self._retry_at.values())

    def forget_past(self, now: Monotonic) -> None:
        self._retry_at = {key: at for key, at in self._retry_at.items() if at > now}

    def clear(self) -> None:
        """Answers to what is under way are of no interest any more."""
        self._under_way.clear()

    def _taken(self, to: NodeId, request: Any) -> bool:  # noqa: ANN401
        key = (to, type(request))
        if self._under_way.get(key) is not request:
            return False
        del self._under_way[key]
        return True
