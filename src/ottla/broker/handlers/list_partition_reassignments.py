"""ListPartitionReassignments (api key 46), version 0: the moves that are under way.

The controller checks and decides.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.protocol.messages import list_partition_reassignments as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
