"""ConsumerGroupDescribe (api key 69), versions 0 to 1: state and members of consumer groups.

v1  member_type
"""

from functools import partial
from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, gather, respond
from ottla.broker.wire.apis import handles
from ottla.broker.wire.cluster_view import GROUP_OPERATIONS
from ottla.broker.wire.connection import Reply
from ottla.groups.coordinator import DescribeConsumerGroup
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import consumer_group_describe as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    groups = list(dict.fromkeys(request.group_ids))
    asks = [
        partial(broker.groups.ask, group, command_of(DescribeConsumerGroup(group), reply))
        if group
        else _refuse
        for group in groups
    ]

    def answer(answers: list[Any]) -> None:
        described = [
            wire.DescribedGroup(answer.code, answer.message, group)
            if isinstance(answer, Refusal)
            else answer
            for group, answer in zip(groups, answers, strict=True)
        ]
        if request.include_authorized_operations:
            for group in described:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        respond(reply, wire.Response(groups=described))

    gather(asks, answer, broker)


def _refuse(_: object) -> None:
    raise Refusal(ErrorCode.INVALID_GROUP_ID)
