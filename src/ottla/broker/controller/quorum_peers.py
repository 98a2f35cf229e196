"""The other controllers, as this node reaches them: one connection for fetches, one for the rest.

A fetch may wait for half a second at the other side, and answers of one connection come in order:
a vote must not stand behind it. Every request ends once, with its answer or with why there is none.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.client.connection import Connection
from ottla.client.dialer import Dialer
from ottla.client.errors import CannotConnect, ClientError, ConnectionLost, error_code
from ottla.env.network import Address, Network
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis
from ottla.protocol.apis import response_class
from ottla.protocol.messages import fetch
from ottla.quorum.effects import Send

CLIENT_ID = "raft"
CONNECT_MS_MAX: Millis = 1000


class QuorumPeers:
    def __init__(
        self,
        network: Network,
        timeout_ms: Millis,
        answered: Callable[[Send, Any], None],
        failed: Callable[[Send, bool], None],
    ) -> None:
        """`failed` is told whether the connection was closed or refused, or only silent."""
        self._network = network
        self._dialer = Dialer(CLIENT_ID)
        self._timeout_ms = timeout_ms
        self._answered = answered
        self._failed = failed
        self._connections: dict[tuple[Address, bool], Connection] = {}
        self._outcomes: dict[Address, str] = {}  # Of the last request to each address.
        self._tasks: dict[asyncio.Task[None], None] = {}  # In the order in which they began.

    def send(self, effect: Send) -> None:
        task = asyncio.get_running_loop().create_task(self._exchange(effect))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def outcomes(self) -> list[str]:
        """The outcome of the last request to each address, a sentence each."""
        return list(self._outcomes.values())

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _exchange(self, effect: Send) -> None:
        request, address = effect.request, Address(*effect.address)
        wait_ms = request.max_wait_ms if isinstance(request, fetch.Request) else 0
        try:
            connection = await self._connection(
                address, is_fetch=isinstance(request, fetch.Request)
            )
            response = await connection.ask(
                request, response_class(request.API_KEY), timeout_ms=self._timeout_ms + wait_ms
            )
        except ClientError as error:
            self._outcomes[address] = str(error)
            self._failed(effect, _is_closed(error))
        else:
            self._outcomes[address] = f"{address} answers {_code_of(response).name}"
            self._answered(effect, response)

    async def _connection(self, address: Address, *, is_fetch: bool) -> Connection:
        key = (address, is_fetch)
        known = self._connections.get(key)
        if known is not None and known.is_open:
            return known
        connection = await self._dialer.dial(
            self._network, address, timeout_ms=min(self._timeout_ms, CONNECT_MS_MAX)
        )
        other = self._connections.get(key)
        if other is not None and other.is_open:  # Opened meanwhile for another request.
            connection.close()
            return other
        self._connections[key] = connection
        return connection


def _is_closed(error: ClientError) -> bool:
    if isinstance(error, CannotConnect):
        return isinstance(error.__cause__, ConnectionRefusedError | ConnectionResetError)
    return isinstance(error, ConnectionLost)


def _code_of(response: Any) -> ErrorCode:  # noqa: ANN401  A response of the quorum's requests.
    """The error code of a response, or of the only partition in it."""
    topics: list[Any] = getattr(response, "responses", None) or getattr(response, "topics", [])
    codes = [partition.error_code for topic in topics for partition in topic.partitions]
    return error_code(response.error_code or next(iter(codes), 0))
