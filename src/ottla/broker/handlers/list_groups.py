"""ListGroups (api key 16), versions 0 to 5: the groups that this broker coordinates.

v4  states_filter     v5  types_filter
"""

from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, when_given
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.administration import ListGroups
from ottla.model.errors import Refusal
from ottla.protocol.messages import list_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    def answer(answers: list[Answer[Any]]) -> None:
        try:
            groups = [group for one in answers for group in one.result()]
        except Refusal as refusal:
            send(reply, wire.Response(error_code=refusal.code))
        else:
            send(reply, wire.Response(groups=groups))

    when_given(broker.groups.submit_all(command_of(ListGroups.of(request), reply)), answer)
