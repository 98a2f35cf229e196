"""UpdateFeatures (api key 57), versions 0 to 2: raise or lower what all nodes support.

    v1  validate_only, kinds of downgrade     v2  one error for all

The controller checks and decides.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.protocol.messages import update_features as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
