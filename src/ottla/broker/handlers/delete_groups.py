"""DeleteGroups (api key 42), versions 0 to 2: forget groups that nobody is in."""

from functools import partial
from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, gather, respond
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.groups.coordinator import DeleteGroup
from ottla.model.errors import Refusal
from ottla.protocol.messages import delete_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    groups = list(dict.fromkeys(request.groups_names))
    asks = [
        partial(broker.groups.ask, group, command_of(DeleteGroup(group), reply)) for group in groups
    ]

    def answer(answers: list[Any]) -> None:
        results = [
            wire.DeletableGroupResult(group, answer.code if isinstance(answer, Refusal) else 0)
            for group, answer in zip(groups, answers, strict=True)
        ]
        respond(reply, wire.Response(results=results))

    gather(asks, answer, broker)
