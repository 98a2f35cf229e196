"""Sees fast that a broker is gone: its closed connection is a hint, a refused one is proof.

Only the active controller looks. A broker whose connection to it closed, or that is silent towards
a new controller, is asked for at its own address: if nothing listens there any more, its process
has died, and it is fenced at once. Whoever merely stalls keeps the whole session.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.env.network import Address
from ottla.metadata.brokers import Died
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId

if TYPE_CHECKING:
    from ottla.broker.server import Broker

logger = logging.getLogger(__name__)

SILENT_MS: Final = 200  # A new controller looks at those that it has not heard for so long.
PROBE_MS_MAX: Final = 1000
PROBE_AGAIN_SECONDS: Final = 0.01
DECIDE_AGAIN_MS: Final = 20


class DeathWatch:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._looking_at: set[NodeId] = set()

    def connection_closed(self, node: NodeId) -> None:
        """A broker that had sent heartbeats closed its connection, or lost it."""
        if self._broker.quorum.is_leader:  # Else they only turn to the one that is.
            self._broker.neighbours.lost(node)
            self._look_at(node)

    def controller_began(self) -> None:
        """This controller is new: it knows nobody's connection yet, but may know why it is."""
        for node in {*self._broker.neighbours.doubted, self._broker.quorum.shell.leader_before}:
            self._look_at(node)
        self._broker.call_later(SILENT_MS, self._look_around)

    def _look_around(self) -> None:
        for node in self._broker.quorum.silent_brokers(SILENT_MS):
            self._look_at(node)

    def _look_at(self, node: NodeId) -> None:
        if node not in self._looking_at and node != self._broker.node_id:
            self._looking_at.add(node)
            self._broker.spawn(self._check(node))

    async def _check(self, node: NodeId) -> None:
        try:
            known = self._broker.image.brokers.get(node)
            if known is None or known.is_fenced:
                return
            if await self._is_gone(node):
                logger.warning("broker %d is gone: nothing listens at its address", node)
                await self._broker.quorum.decide(Died(node, known.epoch))
            else:
                self._broker.neighbours.reached(node)
        except Refusal as refusal:
            logger.debug("broker %d is not fenced yet for being gone: %s", node, refusal)
            if refusal.code == ErrorCode.OPERATION_NOT_ATTEMPTED:
                self._broker.call_later(DECIDE_AGAIN_MS, lambda: self._look_at(node))
        finally:
            self._looking_at.discard(node)

    async def _is_gone(self, node: NodeId) -> bool:
        broker = self._broker
        known = broker.image.brokers.get(node)
        listener = broker.settings.inter_broker_listener_name
        endpoint = known.endpoints.get(listener) if known is not None else None
        if endpoint is None:
            return False
        give_up_at = broker.now + PROBE_MS_MAX
        while broker.now < give_up_at:
            try:
                connection = await Connection.open(
                    broker.env.network,
                    Address(endpoint.host, endpoint.port),
                    client_id="death-watch",
                    timeout_ms=PROBE_MS_MAX,
                )
            except ClientError as error:
                if isinstance(error.__cause__, ConnectionRefusedError):
                    return True
                await asyncio.sleep(PROBE_AGAIN_SECONDS)  # It may be dying: its door closes last.
            else:
                connection.close()
                await asyncio.sleep(0)
                return False
        return False
