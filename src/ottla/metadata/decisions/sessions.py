"""Broker sessions: last heartbeat of each broker, and its metadata offset. Soft state, empty after
a load.

A broker in controlled shutdown waits until another has read the announcement, then until all others
have read that it leads nothing; their heartbeats report how far they have read.
"""

from ottla.model.types import Millis, Monotonic, NodeId, Offset


class Sessions:
    """The controller's own broker shares its process, and needs no session once it has sent a
    heartbeat. Until then its registration may be that of a dead process.
    """

    def __init__(self, timeout_ms: Millis, own: NodeId) -> None:
        self._timeout_ms = timeout_ms
        self._own = own
        self._contacted_at: dict[NodeId, Monotonic] = {}
        self._contacted: set[NodeId] = set()
        self._read_to: dict[NodeId, Offset] = {}
        self._announced_at: dict[NodeId, Offset] = {}
        self._handed_over_at: dict[NodeId, Offset] = {}

    def begin(self, node: NodeId, now: Monotonic) -> None:
        """Start a full session for a broker that has not contacted this controller yet."""
        self._contacted_at[node] = now

    def touch(self, node: NodeId, now: Monotonic) -> None:
        self._contacted.add(node)
        if node == self._own:
            self._contacted_at.pop(node, None)
        else:
            self.begin(node, now)

    def proved_intact(self, node: NodeId) -> None:
        """A new incarnation of `node` proved that it holds all records its predecessor
        acknowledged.
        """
        self._contacted.add(node)

    def doubt(self, node: NodeId) -> None:
        """Another process asks to register as `node`, and does not prove that it is intact.

        The registered process is probably gone; if it lives, its next heartbeat is a contact.
        """
        self._contacted.discard(node)

    def has_contacted(self, node: NodeId) -> bool:
        """True if `node` has contacted this controller and still holds what it acknowledged."""
        return node in self._contacted

    def forget(self, node: NodeId) -> None:
        self._contacted.discard(node)
        self._contacted_at.pop(node, None)
        self._read_to.pop(node, None)
        self._announced_at.pop(node, None)
        self._handed_over_at.pop(node, None)

    def is_valid(self, node: NodeId, now: Monotonic) -> bool:
        contacted_at = self._contacted_at.get(node)
        return contacted_at is not None and now < contacted_at + self._timeout_ms

    def may_live(self, node: NodeId, now: Monotonic) -> bool:
        """True if a process of `node` that is not this one may live."""
        return node != self._own and self.is_valid(node, now)

    def silent_for(self, node: NodeId, now: Monotonic) -> Millis | None:
        """Time since the last heartbeat; None if `node` has no session."""
        contacted_at = self._contacted_at.get(node)
        return None if contacted_at is None else now - contacted_at

    def expired(self, now: Monotonic) -> list[NodeId]:
        return sorted(node for node in self._contacted_at if not self.is_valid(node, now))

    def next_deadline(self) -> Monotonic | None:
        if not self._contacted_at:
            return None
        return Monotonic(min(self._contacted_at.values()) + self._timeout_ms)

    def read_to(self, node: NodeId, offset: Offset) -> None:
        self._read_to[node] = offset

    def announced(self, node: NodeId, offset: Offset) -> None:
        """`node` will stop, as the record at `offset` says. Only the first call counts."""
        self._announced_at.setdefault(node, offset)

    def has_read_announcement(self, node: NodeId, other: NodeId) -> bool:
        """True if `other` sent a heartbeat after the stop of `node` was announced."""
        offset = self._announced_at[node]
        return self.has_contacted(other) and self._read_to.get(other, -1) >= offset

    def handed_over(self, node: NodeId, offset: Offset) -> None:
        """The partitions led by `node` have other leaders from the record at `offset` on."""
        self._handed_over_at[node] = offset

    def is_hand_over_known(self, node: NodeId, others: list[NodeId]) -> bool:
        """Whether all `others` have read the new leaders of `node`'s partitions."""
        offset = self._handed_over_at.get(node, -1)
        return all(self._read_to.get(other, -1) >= offset for other in others)
