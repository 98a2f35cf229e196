"""When the controller last heard of each broker, and what it said: soft state, empty after a load.

A broker that stops has to wait until all others have read that it leads nothing any more; each
says in its heartbeats how far it has read.
"""

from ottla.model.types import Millis, Monotonic, NodeId, Offset


class Sessions:
    """The controller's own broker lives and dies with it, and needs no session."""

    def __init__(self, timeout_ms: Millis, own: NodeId) -> None:
        self._timeout_ms = timeout_ms
        self._own = own
        self._heard_at: dict[NodeId, Monotonic] = {}
        self._heard: set[NodeId] = set()
        self._read_to: dict[NodeId, Offset] = {}
        self._handed_over_at: dict[NodeId, Offset] = {}

    def begin(self, node: NodeId, now: Monotonic) -> None:
        """Give it a whole session, though it has not been heard yet."""
        if node != self._own:
            self._heard_at[node] = now

    def touch(self, node: NodeId, now: Monotonic) -> None:
        self._heard.add(node)
        self.begin(node, now)

    def found_whole(self, node: NodeId) -> None:
        """A new process of `node` has shown that it holds what the last one acknowledged."""
        self._heard.add(node)

    def is_heard(self, node: NodeId) -> bool:
        """True if `node` has contacted this controller and still holds what it acknowledged."""
        return node in self._heard

    def forget(self, node: NodeId) -> None:
        self._heard.discard(node)
        self._heard_at.pop(node, None)
        self._read_to.pop(node, None)
        self._handed_over_at.pop(node, None)

    def is_valid(self, node: NodeId, now: Monotonic) -> bool:
        heard_at = self._heard_at.get(node)
        return heard_at is not None and now < heard_at + self._timeout_ms

    def silent_for(self, node: NodeId, now: Monotonic) -> Millis | None:
        """How long nothing was heard of it; None if nobody expects anything."""
        heard_at = self._heard_at.get(node)
        return None if heard_at is None else now - heard_at

    def expired(self, now: Monotonic) -> list[NodeId]:
        return sorted(node for node in self._heard_at if not self.is_valid(node, now))

    def next_deadline(self) -> Monotonic | None:
        if not self._heard_at:
            return None
        return Monotonic(min(self._heard_at.values()) + self._timeout_ms)

    def read_to(self, node: NodeId, offset: Offset) -> None:
        self._read_to[node] = offset

    def handed_over(self, node: NodeId, offset: Offset) -> None:
        """What `node` led is led by others from the record at `offset` on."""
        self._handed_over_at[node] = offset

    def is_hand_over_known(self, node: NodeId, others: list[NodeId]) -> bool:
        """Whether all `others` have read who leads what `node` led."""
        offset = self._handed_over_at.get(node, -1)
        return all(self._read_to.get(other, -1) >= offset for other in others)
