"""ListGroups (api key 16), versions 0 to 5: the groups that this broker coordinates.

v4  states_filter     v5  types_filter
"""

from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, respond
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.groups.administration import ListGroups
from ottla.model.errors import Refusal
from ottla.protocol.messages import list_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    def answer(answers: list[Any]) -> None:
        response = wire.Response()
        for one in answers:
            if isinstance(one, Refusal):
                response = wire.Response(error_code=one.code)
                break
            response.groups.extend(one)
        respond(reply, response)

    broker.groups.ask_all(command_of(ListGroups.of(request), reply), answer)
