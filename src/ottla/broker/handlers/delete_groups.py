"""DeleteGroups (api key 42), versions 0 to 2: forget groups that nobody is in."""

from functools import partial
from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, gather
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.coordinator import DeleteGroup
from ottla.model.errors import Refusal
from ottla.protocol.messages import delete_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    groups = list(dict.fromkeys(request.groups_names))
    submits = [
        partial(broker.groups.submit, group, command_of(DeleteGroup(group), reply))
        for group in groups
    ]

    def answer(answers: list[Answer[Any]]) -> None:
        results = [_result(group, one) for group, one in zip(groups, answers, strict=True)]
        send(reply, wire.Response(results=results))

    gather(submits, answer, broker)


def _result(group_id: str, answer: Answer[Any]) -> wire.DeletableGroupResult:
    try:
        answer.result()
    except Refusal as refusal:
        return wire.DeletableGroupResult(group_id, refusal.code)
    return wire.DeletableGroupResult(group_id)
