"""DeleteTopics (api key 20), versions 1 to 6.

v3  TOPIC_DELETION_DISABLED where `delete.topic.enable` is false     v6  topics by id
"""

from ottla.broker.context import BrokerContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import delete_topics as wire

DISABLED_SINCE = 3


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: BrokerContext) -> wire.Response:
    if not broker.settings.delete_topic_enable:
        if reply.version < DISABLED_SINCE:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED)
    # Another node may decide it, and is asked in the newest version, which has no bare names.
    request.topics += [wire.DeleteTopicState(name) for name in request.topic_names]
    request.topic_names = []
    response = await reply.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
