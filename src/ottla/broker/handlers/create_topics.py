"""CreateTopics (api key 19), versions 2 to 7.

v5  the answer describes the topic and its configs     v7  topic_id in the answer

The controller checks and decides; partitions are hosted here before the answer leaves, so that
a topic whose creation is confirmed can be written to at once.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.protocol.messages import create_topics as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    await broker.partitions.hosting.wait_hosted(context.connection.listener)
    return response
