"""When the controller last heard of each broker: soft state, empty after a load."""

from ottla.model.types import Millis, Monotonic, NodeId


class Sessions:
    """The controller's own broker lives and dies with it, and needs no session."""

    def __init__(self, timeout_ms: Millis, own: NodeId) -> None:
        self._timeout_ms = timeout_ms
        self._own = own
        self._heard_at: dict[NodeId, Monotonic] = {}

    def touch(self, node: NodeId, now: Monotonic) -> None:
        if node != self._own:
            self._heard_at[node] = now

    def forget(self, node: NodeId) -> None:
        self._heard_at.pop(node, None)

    def is_valid(self, node: NodeId, now: Monotonic) -> bool:
        heard_at = self._heard_at.get(node)
        return heard_at is not None and now < heard_at + self._timeout_ms

    def expired(self, now: Monotonic) -> list[NodeId]:
        return sorted(node for node in self._heard_at if not self.is_valid(node, now))

    def next_deadline(self) -> Monotonic | None:
        if not self._heard_at:
            return None
        return Monotonic(min(self._heard_at.values()) + self._timeout_ms)
