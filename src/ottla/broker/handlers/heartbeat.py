"""Heartbeat (api key 12), versions 0 to 4: a member of a classic group is alive.

It also hears whether the group rebalances.
"""

from ottla.broker.coordinators.group_requests import GroupContext, coordinate
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import heartbeat as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    coordinate(request, reply, broker)
