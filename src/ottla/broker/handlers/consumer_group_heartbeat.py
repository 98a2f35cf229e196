"""ConsumerGroupHeartbeat (api key 68), versions 0 to 1: be a member of a consumer group (KIP-848).

v1  subscribed_topic_regex; members choose their own ids

Joining, leaving, giving up partitions and getting others all happen in this one request.
"""

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles
from ottla.broker.group_requests import coordinate
from ottla.broker.server import Broker
from ottla.protocol.messages import consumer_group_heartbeat as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    coordinate(request, reply, broker)
