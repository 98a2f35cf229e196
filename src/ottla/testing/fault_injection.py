"""The faults of a broker that a test can order. Each applies to one request, from any client."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.testing.faults import FaultOrder


class Injector(Protocol):
    """A running broker, in a thread or in a process."""

    def inject(self, order: "FaultOrder") -> None: ...
    def clear_faults(self) -> None: ...
    def drop_connections(self) -> int: ...


class FaultInjection(ABC):
    @abstractmethod
    def _injector(self) -> Injector:
        """The running broker; raises if it does not run."""

    def fail(self, api: str, error: str, *, times: int = 1, message: str | None = None) -> None:
        """Refuse the next requests of an API: `fail("Produce", "NOT_LEADER_OR_FOLLOWER")`."""
        self._inject("fail", api, times, error=error, message=message)

    def delay(self, api: str, seconds: float, *, times: int = 1) -> None:
        """Serve the next requests of an API, but send the responses late."""
        self._inject("delay", api, times, delay_ms=round(seconds * 1000))

    def drop(self, api: str, *, times: int = 1) -> None:
        """Close the connection on the next requests of an API, without serving them."""
        self._inject("drop", api, times)

    def lose_answers(self, api: str, *, times: int = 1) -> None:
        """Serve the next requests of an API, but close the connection instead of responding."""
        self._inject("lose", api, times)

    def clear_faults(self) -> None:
        """Remove faults that no request has met yet."""
        self._injector().clear_faults()

    def drop_connections(self) -> int:
        """Close every open connection; returns how many there were."""
        return self._injector().drop_connections()

    def _inject(
        self,
        kind: str,
        api: str,
        times: int,
        *,
        error: str = "",
        message: str | None = None,
        delay_ms: int = 0,
    ) -> None:
        from ottla.testing.faults import FaultOrder

        order = FaultOrder(kind, api, times, error, message, delay_ms)
        order.fault()  # A wrong name raises here, not in the broker.
        self._injector().inject(order)


class NodeFaults(FaultInjection):
    """The faults of one node of a cluster."""

    def __init__(self, process: Injector) -> None:
        self._process = process

    def _injector(self) -> Injector:
        return self._process
