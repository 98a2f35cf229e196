"""ConsumerGroupHeartbeat (api key 68), versions 0 to 1: be a member of a consumer group (KIP-848).

v1  subscribed_topic_regex; members choose their own ids

Joining, leaving, giving up partitions and getting others all happen in this one request.
"""

from ottla.broker.coordinators.group_requests import GroupContext, coordinate
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.protocol.messages import consumer_group_heartbeat as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    coordinate(request, reply, broker)
