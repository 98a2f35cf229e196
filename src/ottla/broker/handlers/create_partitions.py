"""CreatePartitions (api key 37), versions 0 to 3.

The controller checks and decides; the new partitions are hosted here before the answer leaves.
"""

from ottla.broker.handlers.context import PartitionContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.protocol.messages import create_partitions as wire


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: PartitionContext) -> wire.Response:
    response = await reply.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    await broker.partitions.hosting.wait_hosted(reply.connection.listener)
    return response
