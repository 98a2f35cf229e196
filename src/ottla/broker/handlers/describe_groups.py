"""DescribeGroups (api key 15), versions 0 to 6: state and members of classic groups.

v3  what the caller may do, if asked     v6  GROUP_ID_NOT_FOUND instead of a dead group
"""

from functools import partial
from typing import Any

from ottla.broker.cluster_view import GROUP_OPERATIONS
from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.group_requests import command_of, gather
from ottla.broker.server import Broker
from ottla.groups.coordinator import DescribeGroup
from ottla.model.errors import Refusal
from ottla.protocol.messages import describe_groups as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    asks = [
        partial(broker.groups.ask, group, command_of(DescribeGroup(group), reply))
        for group in request.groups
    ]

    def answer(answers: list[Any]) -> None:
        described = [
            wire.DescribedGroup(error_code=answer.code, group_id=group)
            if isinstance(answer, Refusal)
            else answer
            for group, answer in zip(request.groups, answers, strict=True)
        ]
        if request.include_authorized_operations:
            for group in described:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        send(reply, wire.Response(groups=described))

    gather(asks, answer)
