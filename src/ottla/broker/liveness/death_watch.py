"""Sees fast that a broker is gone: its closed connection is a hint, a refused one is proof.

Only the active controller looks. A broker whose connection to it closed, or that is silent towards
a new controller, is asked for at its own address: if nothing listens there any more, its process
has died, and it is fenced at once. Whoever merely stalls keeps the whole session.
"""

import asyncio
import logging
from typing import Final

from ottla.broker.liveness.context import LivenessContext
from ottla.broker.liveness.peer_liveness import PeerLiveness
from ottla.broker.wire.connection import Connection
from ottla.client.dialer import Dialer
from ottla.client.errors import ClientError
from ottla.env.network import Address
from ottla.metadata.decisions.brokers import Died
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId

logger = logging.getLogger(__name__)

SILENT_MS: Final = 200  # A new controller looks at those that it has not heard for so long.
PROBE_MS_MAX: Final = 1000
PROBE_AGAIN_SECONDS: Final = 0.01
DECIDE_AGAIN_MS: Final = 20


class DeathWatch:
    def __init__(self, context: LivenessContext, peer_liveness: PeerLiveness) -> None:
        self._context = context
        self._peer_liveness = peer_liveness
        self._looking_at: set[NodeId] = set()
        self._dialer = Dialer("death-watch")
        self._brokers: dict[Connection, NodeId] = {}  # Whose heartbeats a connection brings.

    def heard_on(self, connection: Connection, node: NodeId) -> None:
        """A broker sends its heartbeats over this connection."""
        if connection not in self._brokers:
            connection.on_closed.append(
                lambda: self.connection_closed(self._brokers.pop(connection))
            )
        self._brokers[connection] = node

    def connection_closed(self, node: NodeId) -> None:
        """A broker that had sent heartbeats closed its connection, or lost it."""
        if self._context.quorum.is_leader:  # Else they only turn to the one that is.
            self._peer_liveness.lost(node)
            self._look_at(node)

    def controller_began(self) -> None:
        """This controller is new: it knows nobody's connection yet, but may know why it is.

        It also waits for a heartbeat of its own broker, which it takes for dead until then.
        """
        self._context.quorum.requests.heartbeats.moved.set()
        for node in {*self._peer_liveness.doubted, self._context.quorum.shell.leader_before}:
            self._look_at(node)
        self._context.call_later(SILENT_MS, self._look_around)

    def _look_around(self) -> None:
        for node in self._context.quorum.commits.silent_brokers(SILENT_MS):
            self._look_at(node)

    def _look_at(self, node: NodeId) -> None:
        if node not in self._looking_at and node != self._context.node_id:
            self._looking_at.add(node)
            self._context.spawn(self._check(node))

    async def _check(self, node: NodeId) -> None:
        try:
            known = self._context.image.brokers.get(node)
            if known is None or known.is_fenced:
                return
            if await self._is_gone(node):
                logger.warning("broker %d is gone: nothing listens at its address", node)
                await self._context.quorum.requests.decide(Died(node, known.epoch))
            else:
                self._peer_liveness.reached(node)
        except Refusal as refusal:
            logger.debug("broker %d is not fenced yet for being gone: %s", node, refusal)
            if refusal.code == ErrorCode.OPERATION_NOT_ATTEMPTED:
                self._context.call_later(DECIDE_AGAIN_MS, lambda: self._look_at(node))
        finally:
            self._looking_at.discard(node)

    async def _is_gone(self, node: NodeId) -> bool:
        known = self._context.image.brokers.get(node)
        listener = self._context.settings.inter_broker_listener_name
        endpoint = known.endpoints.get(listener) if known is not None else None
        if endpoint is None:
            return False
        give_up_at = self._context.now + PROBE_MS_MAX
        while self._context.now < give_up_at:
            try:
                connection = await self._dialer.dial(
                    self._context.env.network,
                    Address(endpoint.host, endpoint.port),
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
