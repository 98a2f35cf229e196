"""AlterPartitionReassignments (api key 45), versions 0 to 1: move partitions, or stop moving them.

    v1  whether the replication factor may change

The controller checks and decides.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.protocol.messages import alter_partition_reassignments as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
