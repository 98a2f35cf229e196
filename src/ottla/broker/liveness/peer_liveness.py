"""The other brokers as this one sees them itself, before or after the controller says anything.

A broker that closed its connection may be gone: until that is known, who asks for the leaders of
its partitions waits a moment, instead of being sent to it once more. A broker that has just been
fenced is still listed for a while, as it is in Kafka, which needs that long to notice. librdkafka
drops a broker that is not listed any more along with the partitions that it is about to move away
from it, and looks for them again only after a second.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from ottla.broker.context import BrokerContext
from ottla.metadata.image.cluster import Broker as Registration
from ottla.metadata.image.delta import ImageDelta
from ottla.model.types import Monotonic, NodeId

if TYPE_CHECKING:
    from asyncio import TimerHandle


HELD_MS_MAX: Final = 1000  # For so long after its connection closed, a broker is in doubt.
LOST_AGAIN_MS: Final = 10_000  # Attempts that fail do not renew the doubt; a later loss does.

Then = Callable[[], None]


class PeerLiveness:
    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._lost_at: dict[NodeId, Monotonic] = {}
        self._alive: dict[NodeId, Registration] = {}
        self._departed: dict[NodeId, tuple[Registration, Monotonic]] = {}  # Listed until then.
        self._held: dict[Then, tuple[frozenset[NodeId], TimerHandle]] = {}

    def load(self) -> None:
        """The image as it is at the start."""
        image = self._context.image
        self._alive = {node: b for node, b in image.brokers.items() if not b.is_fenced}

    # Who may be gone.

    @property
    def doubted(self) -> frozenset[NodeId]:
        if not self._lost_at:
            return frozenset()
        since = self._context.now - HELD_MS_MAX
        return frozenset(node for node, at in self._lost_at.items() if at > since)

    def lost(self, node: NodeId) -> None:
        """It closed its connection."""
        now = self._context.now
        if now - self._lost_at.get(node, -LOST_AGAIN_MS) >= LOST_AGAIN_MS:
            self._lost_at[node] = now

    def reached(self, node: NodeId) -> None:
        """It answers: whatever it was, its process lives."""
        if self._lost_at.pop(node, None) is not None:
            self._release()

    def hold(self, leaders: Collection[NodeId], then: Then) -> None:
        """Call `then` when none of `leaders` is in doubt any more; now, if none is."""
        waits_for = self.doubted.intersection(leaders)
        if not waits_for:
            then()
            return
        until = max(self._lost_at[node] for node in waits_for) + HELD_MS_MAX
        delay_ms = max(until - self._context.now, 1)
        timer = self._context.call_later(delay_ms, lambda: self._let_go(then))
        self._held[then] = (waits_for, timer)

    # Who is listed.

    def departed(self) -> list[Registration]:
        """The brokers that clients had better know a little longer."""
        if not self._departed:
            return []
        now = self._context.now
        self._departed = {node: one for node, one in self._departed.items() if one[1] > now}
        return [registration for registration, _ in self._departed.values()]

    def image_changed(self, delta: ImageDelta) -> None:
        """The registrations of some brokers may have changed."""
        if not delta.brokers:
            return
        image = self._context.image
        until = Monotonic(self._context.now + self._context.settings.broker_session_timeout_ms)
        for node in delta.brokers:
            known, before = image.brokers.get(node), self._alive.pop(node, None)
            if known is not None and not known.is_fenced:
                self._alive[node] = known
                self._departed.pop(node, None)
            elif known is not None and before is not None:
                self._departed[node] = (before, until)
            self._lost_at.pop(node, None)
        self._release()

    def _release(self) -> None:
        doubted = self.doubted
        for then, (waits_for, _) in list(self._held.items()):
            if not waits_for & doubted:
                self._let_go(then)

    def _let_go(self, then: Then) -> None:
        held = self._held.pop(then, None)
        if held is not None:
            held[1].cancel()
            then()
