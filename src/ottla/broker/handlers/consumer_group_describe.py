"""ConsumerGroupDescribe (api key 69), versions 0 to 1: state and members of consumer groups.

v1  member_type
"""

from functools import partial
from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, gather
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.wire.apis import handles
from ottla.broker.wire.cluster_view import GROUP_OPERATIONS
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.coordinator import DescribeConsumerGroup
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import consumer_group_describe as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    groups = list(dict.fromkeys(request.group_ids))
    submits = [
        partial(broker.groups.submit, group, command_of(DescribeConsumerGroup(group), reply))
        if group
        else partial(refused, Refusal(ErrorCode.INVALID_GROUP_ID))
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
        return wire.DescribedGroup(refusal.code, refusal.message, group_id)
