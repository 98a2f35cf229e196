"""SyncGroup (api key 14), versions 0 to 5: the leader's assignment for each member.

Followers wait until the leader's assignment is kept.
"""

from ottla.broker.coordinators.group_requests import GroupContext, coordinate
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import sync_group as wire

PROTOCOL_SINCE = 5


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    if reply.version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    coordinate(request, reply, broker)
