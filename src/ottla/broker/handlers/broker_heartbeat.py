"""BrokerHeartbeat (api key 63), versions 0 to 2: a broker is alive, and says how far it has read.

A broker whose process dies closes the connection of its heartbeats: a hint that it is gone.
"""

from ottla.broker.handlers.context import HeartbeatContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.types import NodeId
from ottla.protocol.messages import broker_heartbeat as wire


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: HeartbeatContext) -> wire.Response:
    broker.death_watch.heard_on(reply.connection, NodeId(request.broker_id))
    response = await reply.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
