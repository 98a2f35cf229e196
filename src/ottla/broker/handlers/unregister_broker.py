"""UnregisterBroker (api key 64), version 0: forget a broker that will not come back.

The controller checks and decides.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.protocol.messages import unregister_broker as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
