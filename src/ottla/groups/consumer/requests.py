"""What a ConsumerGroupHeartbeat must say, and what it changes of a member's metadata."""

from collections.abc import Sequence
from copy import copy

from ottla.groups.consumer.group import LEFT, LEFT_FOR_A_WHILE
from ottla.groups.turn import GroupCommand
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.consumer_group_records import ConsumerGroupMemberMetadataValue
from ottla.protocol.messages import consumer_group_heartbeat as wire


def check_request(request: wire.Request, assignors: Sequence[str]) -> None:
    _demand(_is_said(request.group_id), "GroupId can't be empty.")
    _demand(_is_said(request.instance_id), "InstanceId can't be empty.")
    _demand(_is_said(request.rack_id), "RackId can't be empty.")
    _demand(_is_said(request.member_id), "MemberId can't be empty.")
    if request.member_epoch == 0:
        _demand(
            request.rebalance_timeout_ms != -1,
            "RebalanceTimeoutMs must be provided in first request.",
        )
        _demand(
            request.topic_partitions is not None and not request.topic_partitions,
            "TopicPartitions must be empty when (re-)joining.",
        )
        _demand(
            request.subscribed_topic_names is not None
            or request.subscribed_topic_regex is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        )
    elif request.member_epoch == LEFT_FOR_A_WHILE:
        _demand(request.instance_id is not None, "InstanceId can't be null.")
    elif request.member_epoch < LEFT:
        raise Refusal(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def _is_said(text: str | None) -> bool:
    """Blanks say nothing."""
    return text is None or bool(text.strip())


def _demand(condition: bool, sentence: str) -> None:
    if not condition:
        raise Refusal(ErrorCode.INVALID_REQUEST, sentence)


def new_metadata() -> ConsumerGroupMemberMetadataValue:
    """Of a member that has said nothing yet."""
    return ConsumerGroupMemberMetadataValue(
        instance_id=None, rack_id=None, server_assignor=None, classic_member_metadata=None
    )


def updated_metadata(
    before: ConsumerGroupMemberMetadataValue, command: GroupCommand
) -> ConsumerGroupMemberMetadataValue:
    """What is not said stays as it was; the very same, if nothing new is said."""
    request: wire.Request = command.request
    if _is_plain(request) and (
        before.client_id == command.client_id
        and before.client_host == command.client_host
        and before.instance_id == request.instance_id
        and before.classic_member_metadata is None
    ):
        return before
    after = copy(before)
    after.client_id, after.client_host = command.client_id, command.client_host
    after.classic_member_metadata = None
    if request.instance_id is not None:
        after.instance_id = request.instance_id
    if request.rack_id is not None:
        after.rack_id = request.rack_id
    if request.rebalance_timeout_ms != -1:
        after.rebalance_timeout_ms = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        after.server_assignor = request.server_assignor
    if request.subscribed_topic_names is not None:
        after.subscribed_topic_names = list(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        after.subscribed_topic_regex = request.subscribed_topic_regex
    return after


def _is_plain(request: wire.Request) -> bool:
    """Whether it only says that the member is there, as nearly all do."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and request.server_assignor is None
        and request.rack_id is None
    )
