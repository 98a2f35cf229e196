"""JoinGroup (api key 11), versions 0 to 9: become a member of a classic group.

v4  a member without an id is told one and joins again with it     v5  group_instance_id
v9  a static leader that is back may be told to keep the assignment

The answer comes when the next generation begins: everyone has joined, or was given up.
"""

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles
from ottla.broker.group_requests import coordinate
from ottla.broker.server import Broker
from ottla.protocol.messages import join_group as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    coordinate(request, reply, broker)
