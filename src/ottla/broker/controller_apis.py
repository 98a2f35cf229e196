"""What the CONTROLLER listener serves: decisions, and the quorum's own requests.

Here nothing is forwarded: a node that is not the active controller says so, or two of them would
send a request to and fro. APIs that only other nodes use have no handler of their own: the request
goes to the controller or to the quorum as it is.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.connection import Connection, Reply
from ottla.broker.dispatch import (
    CONTROLLER_SERVED,
    Context,
    Dispatcher,
    Entry,
    Handler,
    Served,
    send,
)
from ottla.broker.envelopes import unwrap
from ottla.model.types import NodeId
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import broker_heartbeat, envelope

if TYPE_CHECKING:
    from ottla.broker.quorum_driver import QuorumDriver
    from ottla.broker.server import Broker


def _served(key: ApiKey, first: int, last: int) -> Served:
    return Served(key.name.lower(), range(first, last + 1))


DECIDED: Final[dict[int, Served]] = {
    key: _served(key, first, last)
    for key, first, last in (
        (ApiKey.ALTER_PARTITION, 2, 3),
        (ApiKey.BROKER_REGISTRATION, 0, 4),
        (ApiKey.BROKER_HEARTBEAT, 0, 2),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0),
        (ApiKey.CONTROLLER_REGISTRATION, 0, 0),
        (ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0),
    )
}
OF_THE_QUORUM: Final[dict[int, Served]] = {
    key: _served(key, first, last)
    for key, first, last in (
        (ApiKey.FETCH, 12, 18),
        (ApiKey.VOTE, 0, 2),
        (ApiKey.BEGIN_QUORUM_EPOCH, 0, 1),
        (ApiKey.END_QUORUM_EPOCH, 0, 1),
        (ApiKey.FETCH_SNAPSHOT, 0, 1),
        (ApiKey.ADD_RAFT_VOTER, 0, 1),
        (ApiKey.REMOVE_RAFT_VOTER, 0, 0),
        (ApiKey.UPDATE_RAFT_VOTER, 0, 0),
    )
}
ENVELOPE: Final[dict[int, Served]] = {ApiKey.ENVELOPE: _served(ApiKey.ENVELOPE, 0, 0)}


class LocalController:
    """The driver as handlers of this listener see it: what it does not decide itself is refused."""

    def __init__(self, driver: "QuorumDriver") -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._driver, name)

    async def submit(self, request: object) -> Any:  # noqa: ANN401
        return await self._driver.decide(request)


class ControllerSide:
    """The broker as handlers of this listener see it."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._broker, name)

    @property
    def quorum(self) -> LocalController:
        return LocalController(self._broker.quorum)


class ControllerDispatcher(Dispatcher):
    def __init__(
        self, broker: "Broker", on_broker_gone: Callable[[NodeId], None] | None = None
    ) -> None:
        """`on_broker_gone` hears of the closed connection of a broker that had sent heartbeats."""
        served = {**CONTROLLER_SERVED, **DECIDED, **OF_THE_QUORUM, **ENVELOPE}
        super().__init__(ControllerSide(broker), served)  # type: ignore[arg-type]
        self._on_broker_gone = on_broker_gone
        self._brokers: dict[Connection, NodeId] = {}

    def _load(self, api_key: int) -> Entry:
        if api_key in CONTROLLER_SERVED:
            return super()._load(api_key)
        served = self.served.get(api_key)
        if served is None:
            return super()._load(api_key)  # It says that nobody serves it.
        request = import_module(f"ottla.protocol.messages.{served.module}").Request
        handle: Handler = self._decide if api_key in DECIDED else _ask_quorum
        if api_key in ENVELOPE:
            handle = self._unwrap
        is_async = api_key not in OF_THE_QUORUM
        entry = Entry(request, handle, served.versions, request.FLEXIBLE_SINCE, is_async, None)
        self._entries[api_key] = entry
        return entry

    async def _decide(self, request: Any, context: Context, broker: "Broker") -> Any:  # noqa: ANN401
        if isinstance(request, broker_heartbeat.Request):
            self._note(context.connection, NodeId(request.broker_id))
        return await broker.quorum.submit(request)

    async def _unwrap(
        self, request: envelope.Request, context: Context, broker: "Broker"
    ) -> envelope.Response:
        return await unwrap(request, context, broker, self._entry)

    def _entry(self, api_key: int) -> Entry:
        return self._entries.get(api_key) or self._load(api_key)

    def _note(self, connection: Connection, node: NodeId) -> None:
        """A broker whose process dies closes this connection."""
        if connection not in self._brokers:
            connection.on_closed.append(lambda: self._gone(connection))
        self._brokers[connection] = node

    def _gone(self, connection: Connection) -> None:
        node = self._brokers.pop(connection)
        if self._on_broker_gone is not None:
            self._on_broker_gone(node)


def _ask_quorum(request: Any, reply: Reply, broker: "Broker") -> None:  # noqa: ANN401
    def answer(response: Any) -> None:  # noqa: ANN401
        if response is None:  # It was about something else than the metadata log.
            reply.connection.close()
        else:
            send(reply, response)

    broker.quorum.shell.request(request, answer)
