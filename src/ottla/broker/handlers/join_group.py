"""JoinGroup (api key 11), versions 0 to 9: become a member of a classic group.

v4  a member without an id is told one and joins again with it     v5  group_instance_id
v7  without a generation there is no protocol: null                v9  a static leader that is back
                                                                       may keep the assignment

The answer comes when the next generation begins: everyone has joined, or was given up.
"""

from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, answer_with, command_of
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.protocol.messages import join_group as wire

NULL_PROTOCOL_SINCE = 7


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    def answer(response: Any) -> None:  # noqa: ANN401
        is_refused = isinstance(response, wire.Response) and response.error_code
        if is_refused and reply.version >= NULL_PROTOCOL_SINCE:
            response.protocol_name = None
        answer_with(request, reply, response)

    broker.groups.ask(request.group_id, command_of(request, reply), answer)
