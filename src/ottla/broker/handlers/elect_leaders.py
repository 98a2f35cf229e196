"""ElectLeaders (api key 43), versions 0 to 2: preferred leaders, or any where nobody leads.

    v1  election_type; the error of the whole request

The controller checks and decides.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.protocol.messages import elect_leaders as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
