"""Heartbeat (api key 12), versions 0 to 4: a member of a classic group is alive.

It also hears whether the group rebalances.
"""

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles
from ottla.broker.group_requests import coordinate
from ottla.broker.server import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import heartbeat as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    coordinate(request, reply, broker)
