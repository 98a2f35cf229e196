"""The way to the active controller, from a node that is not it.

A request is sent again until some controller has decided it, or its time is over: leaders change,
and nobody who asks a broker should have to know. What the controller refuses comes back as Refusal.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.broker.wire.apis import is_enveloped
from ottla.broker.wire.envelopes import opened, wrap
from ottla.client.connection import Connection
from ottla.client.dialer import Dialer
from ottla.client.errors import ClientError, NotServed, error_code
from ottla.env.clock import Clock
from ottla.env.network import Address, Network
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.principal import Origin
from ottla.model.types import Millis
from ottla.protocol.apis import response_class
from ottla.protocol.messages import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_quorum,
    envelope,
    incremental_alter_configs,
)

logger = logging.getLogger(__name__)

CLIENT_ID: Final = "controller-channel"
CONNECT_MS_MAX: Final = 1000
REQUEST_MS_MAX: Final = 10_000
FORWARD_MS_MAX: Final = 30_000
RETRY_SECONDS: Final = 0.02
NOT_ACTIVE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class ControllerChannel:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        address: Callable[[], Address | None],
        answer_ms_max: Millis = REQUEST_MS_MAX,
    ) -> None:
        """`address` is that of the active controller, as far as it is known.

        A request without an answer for `answer_ms_max` is sent again over a new connection.
        """
        self._answer_ms_max = answer_ms_max
        self._network = network
        self._dialer = Dialer(CLIENT_ID)
        self._clock = clock
        self._address = address
        self._connection: Connection | None = None
        self._leader: Address | None = None
        self.moved = asyncio.Event()  # Set when the controller is to be told at once that we live.
        self._opening = asyncio.Lock()

    async def ask(
        self,
        request: Any,  # noqa: ANN401
        is_ours: Callable[[], bool],
        timeout_ms: Millis = FORWARD_MS_MAX,
        origin: Origin | None = None,
    ) -> Any:  # noqa: ANN401
        """The active controller's response; None if this node has become it meanwhile.

        A request on behalf of a client goes in an Envelope, if brokers forward it so.
        """
        give_up_at = self._clock.monotonic() + timeout_ms
        while not is_ours():
            try:
                response = await self._attempt(request, origin)
            except NotServed as error:
                raise Refusal(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
            except ClientError as error:
                logger.debug("the controller does not answer: %s", error)
                response = None
            if response is not None and not says_not_controller(response):
                return _accepted(response)
            if self._clock.monotonic() >= give_up_at:
                raise Refusal(
                    ErrorCode.REQUEST_TIMED_OUT, "There is no active controller at the moment."
                )
            await asyncio.sleep(RETRY_SECONDS)
        return None

    def leader_changed(self) -> None:
        """Whoever waits for a controller that is not the active one any more asks the next."""
        known, address = self._connection, self._address()
        if known is not None and known.is_open and known.address != address:
            known.close()
        if address != self._leader:
            self._leader = address
            self.moved.set()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def _attempt(self, request: Any, origin: Origin | None) -> Any:  # noqa: ANN401
        connection = await self._connected()
        if connection is None:
            return None
        response, timeout_ms = response_class(request.API_KEY), self._answer_ms_max
        if origin is None or not is_enveloped(request.API_KEY):
            return await connection.ask(request, response, timeout_ms=timeout_ms)
        version = connection.version_for(type(request))
        sent = wrap(request, version, origin)
        answer = await connection.ask(sent, envelope.Response, timeout_ms=timeout_ms)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            return None
        return opened(answer, response, version)

    async def _connected(self) -> Connection | None:
        async with self._opening:
            address = self._address()
            known = self._connection
            if known is not None and known.is_open and known.address == address:
                return known
            if known is not None:
                known.close()
                self._connection = None
            if address is None:
                return None
            self._connection = await self._dialer.dial(
                self._network, address, timeout_ms=CONNECT_MS_MAX
            )
            return self._connection


def says_not_controller(response: Any) -> bool:  # noqa: ANN401
    """Whether the node that answered is not the active controller (any more)."""
    if getattr(response, "error_code", 0) in NOT_ACTIVE:
        return True
    results = _results(response)
    return bool(results) and results[0].error_code in NOT_ACTIVE


def _results(response: Any) -> Sequence[Any]:  # noqa: ANN401
    """Of a response without an error code of its own: then each of its results says the same."""
    match response:
        case create_topics.Response():
            return response.topics
        case create_partitions.Response():
            return response.results
        case delete_topics.Response() | alter_configs.Response():
            return response.responses
        case incremental_alter_configs.Response():
            return response.responses
        case describe_quorum.Response():
            return [part for topic in response.topics for part in topic.partitions]
    return ()


def _accepted(response: Any) -> Any:  # noqa: ANN401
    """Refused as a whole: raise it, as the controller beside us would."""
    code = getattr(response, "error_code", 0)
    if code:
        raise Refusal(error_code(code), getattr(response, "error_message", None))
    return response
