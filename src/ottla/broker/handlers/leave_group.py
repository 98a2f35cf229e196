"""LeaveGroup (api key 13), versions 0 to 5: members leave a classic group.

v3  several members at once, static ones by their instance id
"""

from ottla.broker.coordinators.group_requests import GroupContext, coordinate
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import leave_group as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    coordinate(request, reply, broker)
