"""LeaveGroup (api key 13), versions 0 to 5: members leave a classic group.

v3  several members at once, static ones by their instance id
"""

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles
from ottla.broker.group_requests import coordinate
from ottla.broker.server import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import leave_group as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    coordinate(request, reply, broker)
