"""DeleteGroups (api key 42), versions 0 to 2: forget groups that nobody is in."""

from functools import partial
from typing import Any

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.group_requests import command_of, gather
from ottla.broker.server import Broker
from ottla.groups.coordinator import DeleteGroup
from ottla.model.errors import Refusal
from ottla.protocol.messages import delete_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    groups = list(dict.fromkeys(request.groups_names))
    asks = [
        partial(broker.groups.ask, group, command_of(DeleteGroup(group), reply)) for group in groups
    ]

    def answer(answers: list[Any]) -> None:
        results = [
            wire.DeletableGroupResult(group, answer.code if isinstance(answer, Refusal) else 0)
            for group, answer in zip(groups, answers, strict=True)
        ]
        send(reply, wire.Response(results=results))

    gather(asks, answer)
