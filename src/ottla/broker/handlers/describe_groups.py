"""DescribeGroups (api key 15), versions 0 to 6: state and members of classic groups.

v3  what the caller may do, if asked     v6  GROUP_ID_NOT_FOUND instead of a dead group
"""

from functools import partial
from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, gather
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import handles
from ottla.broker.wire.cluster_view import GROUP_OPERATIONS
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.coordinator import DescribeGroup
from ottla.model.errors import Refusal
from ottla.protocol.messages import describe_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    groups = list(dict.fromkeys(request.groups))
    submits = [
        partial(broker.groups.submit, group, command_of(DescribeGroup(group), reply))
        for group in groups
    ]

    def answer(answers: list[Answer[Any]]) -> None:
        described = [_described(group, one) for group, one in zip(groups, answers, strict=True)]
        if request.include_authorized_operations:
            for group in described:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        send(reply, wire.Response(groups=described))

    gather(submits, answer, broker)


def _described(group_id: str, answer: Answer[wire.DescribedGroup]) -> wire.DescribedGroup:
    try:
        return answer.result()
    except Refusal as refusal:
        return wire.DescribedGroup(error_code=refusal.code, group_id=group_id)
