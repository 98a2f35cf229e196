"""SyncGroup (api key 14), versions 0 to 5: the leader's assignment for each member.

Followers wait until the leader's assignment is kept.
"""

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles
from ottla.broker.group_requests import coordinate
from ottla.broker.server import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import sync_group as wire

PROTOCOL_SINCE = 5


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    if reply.version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    coordinate(request, reply, broker)
