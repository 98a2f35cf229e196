"""What the parts of a broker are given of it: the node that they run on, and the cluster.

`Broker` is both, and no part knows more of it. A part that needs another part is given that one.
"""

from asyncio import TimerHandle
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ottla.broker.settings.settings import Settings
from ottla.env.environment import Environment
from ottla.metadata.image.image import ClusterImage
from ottla.model.principal import Origin
from ottla.model.types import Millis, Monotonic, NodeId


class Node(Protocol):
    """The node's id and settings, its machine, its tasks and timers."""

    @property
    def node_id(self) -> NodeId: ...

    @property
    def settings(self) -> Settings:
        """The settings in force; a dynamic config replaces the object."""

    @property
    def env(self) -> Environment: ...

    @property
    def now(self) -> Monotonic: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task; an exception in it ends the broker."""

    def call_later(self, delay_ms: Millis, callback: Callable[[], None]) -> TimerHandle: ...


class ClusterView(Protocol):
    """The cluster as far as this node knows that it is committed, and the way to change it."""

    @property
    def image(self) -> ClusterImage: ...

    @property
    def broker_epoch(self) -> int:
        """Epoch of this broker's registration; -1 while it is not registered."""

    @property
    def is_registered(self) -> bool: ...

    @property
    def is_active_controller(self) -> bool: ...

    @property
    def voter_count(self) -> int: ...

    async def submit(self, request: object, origin: Origin | None = None) -> Any:  # noqa: ANN401
        """The active controller's response, once committed; raises its Refusal.

        `origin` is the client on whose behalf the request is, if it is not this broker's own.
        """


class BrokerContext(Node, ClusterView, Protocol):
    """A node of a cluster."""
