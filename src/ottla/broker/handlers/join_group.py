"""JoinGroup (api key 11), versions 0 to 9: become a member of a classic group.

v4  a member without an id is told one and joins again with it     v5  group_instance_id
v7  without a generation there is no protocol: null                v9  a static leader that is back
                                                                       may keep the assignment

The answer comes when the next generation begins: everyone has joined, or was given up.
"""

from contextlib import suppress

from ottla.broker.coordinators.group_requests import GroupContext, answer_with, command_of
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.errors import Refusal
from ottla.protocol.messages import join_group as wire

NULL_PROTOCOL_SINCE = 7


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    def answer(joined: Answer[wire.Response]) -> None:
        with suppress(Refusal):
            response = joined.result()
            if response.error_code and reply.version >= NULL_PROTOCOL_SINCE:
                response.protocol_name = None
        answer_with(request, reply, joined)

    broker.groups.submit(request.group_id, command_of(request, reply)).then(answer)
