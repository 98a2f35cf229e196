"""ListGroups (api key 16), versions 0 to 5: the groups that this broker coordinates.

v4  states_filter     v5  types_filter
"""

from typing import Any

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.group_requests import command_of
from ottla.broker.server import Broker
from ottla.model.errors import Refusal
from ottla.protocol.messages import list_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    def answer(answers: list[Any]) -> None:
        response = wire.Response()
        for one in answers:
            if isinstance(one, Refusal):
                response = wire.Response(error_code=one.code)
                break
            response.groups.extend(one)
        send(reply, response)

    broker.groups.ask_all(command_of(request, reply), answer)
