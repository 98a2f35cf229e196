"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The coordinator assigns for them too. A member that has to change is told to rejoin; its JoinGroup
says what it still owns and is answered at once, with its epoch as the generation; SyncGroup gives
it what is its own. It never waits for others, and never leads.
"""

from copy import copy

from ottla.groups.classic.joining import KNOWN_ID_SINCE
from ottla.groups.consumer import membership as consumer_membership
from ottla.groups.consumer.assignment import may_assign
from ottla.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState
from ottla.groups.consumer.membership import CONSUMER_SESSION, REJOIN, RESYNC, static_member
from ottla.groups.consumer.requests import new_metadata
from ottla.groups.mixed import migration
from ottla.groups.mixed.embedded_protocol import encoded_assignment, owned_by, subscription_of
from ottla.groups.settings import MigrationPolicy
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol import consumer_group_records as records
from ottla.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, ConsumerProtocolSubscription
from ottla.protocol.messages import heartbeat as heartbeat_wire
from ottla.protocol.messages import join_group as wire
from ottla.protocol.messages import leave_group as leave_wire
from ottla.protocol.messages import sync_group as sync_wire


def join(turn: Turn, command: GroupCommand, group: ConsumerGroup) -> wire.Response:
    request: wire.Request = command.request
    member_id = request.member_id or turn.around.new_id()
    _check_join(turn, request, group, member_id)
    is_dynamic = request.group_instance_id is None
    if not request.member_id and is_dynamic and command.version >= KNOWN_ID_SINCE:
        return wire.Response(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    subscription = _subscription(request)
    known = _known(request, group)
    metadata = _metadata(command, subscription, known.metadata if known else new_metadata())
    if known is not None and known.id != member_id:
        if migration.is_last_replaced(turn, group, known):
            return _join_as_the_last(turn, group, known, ConsumerMember(member_id, metadata))
        known = consumer_membership.replace(turn, known, member_id, group)
    member = known or ConsumerMember(member_id, new_metadata())
    owned = owned_by(subscription, turn.around.topics)
    after = consumer_membership.advance(turn, group, member, metadata, owned)
    consumer_membership.cancel_timers(turn, group, member_id)
    turn.set_timer(CONSUMER_SESSION, group.id, member_id, request.session_timeout_ms)
    turn.set_timer(RESYNC, group.id, member_id, max(metadata.rebalance_timeout_ms, 0))
    return _joined(after)


def sync(turn: Turn, request: sync_wire.Request, group: ConsumerGroup) -> sync_wire.Response:
    member, classic = _classic(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    protocol = classic.supported_protocols[0]
    is_other_type = request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
    if is_other_type or request.protocol_name not in (None, protocol.name):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_behind = group.target_epoch > member.epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_rejoin(turn, group, member)
        return sync_wire.Response(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    turn.cancel_timer(RESYNC, group.id, member.id)
    turn.set_timer(CONSUMER_SESSION, group.id, member.id, classic.session_timeout_ms)
    return sync_wire.Response(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encoded_assignment(member.assigned, protocol.metadata, turn.around.topics),
    )


def heartbeat(turn: Turn, request: heartbeat_wire.Request, group: ConsumerGroup) -> ErrorCode:
    member, classic = _classic(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    turn.set_timer(CONSUMER_SESSION, group.id, member.id, classic.session_timeout_ms)
    if not _has_to_rejoin(turn, group, member):
        return ErrorCode.NONE
    _expect_rejoin(turn, group, member)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leave(
    turn: Turn, members: list[leave_wire.MemberIdentity], group: ConsumerGroup
) -> list[leave_wire.MemberResponse]:
    """All who may go, go together: the last of the new protocol may be among them."""
    answers, leaving = [], {}
    for one in members:
        code = ErrorCode.NONE
        try:
            member = _leaving(group, one)
            leaving[member.id] = member
        except Refusal as refusal:
            code = refusal.code
        answers.append(leave_wire.MemberResponse(one.member_id, one.group_instance_id, code))
    if leaving:
        migration.fence(turn, group, list(leaving.values()))
    return answers


def _leaving(group: ConsumerGroup, one: leave_wire.MemberIdentity) -> ConsumerMember:
    if one.group_instance_id is None:
        return group.member(one.member_id)
    # An admin removes a static member without knowing its id.
    member_id = one.member_id or group.static.get(one.group_instance_id, "")
    return static_member(group, one.group_instance_id, member_id)


def _check_join(turn: Turn, request: wire.Request, group: ConsumerGroup, member_id: str) -> None:
    if turn.settings.migration is MigrationPolicy.DISABLED:
        message = "Classic members cannot join the consumer group: its migration is disabled."
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    consumer_membership.check_is_not_full(turn, group, member_id)
    names = [protocol.name for protocol in request.protocols]
    if not group.supports_classic(request.protocol_type, names):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _known(request: wire.Request, group: ConsumerGroup) -> ConsumerMember | None:
    """Who it is, or in whose place it comes."""
    if request.group_instance_id is None:
        return group.members.get(request.member_id)
    if request.member_id:
        return static_member(group, request.group_instance_id, request.member_id)
    known_id = group.static.get(request.group_instance_id)
    return group.members[known_id] if known_id is not None else None


def _subscription(request: wire.Request) -> ConsumerProtocolSubscription:
    """All its protocols say the same."""
    try:
        return subscription_of(request.protocols[0].metadata)
    except ProtocolError as error:
        message = "The subscription in the member's protocols cannot be understood."
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message) from error


def _metadata(
    command: GroupCommand,
    subscription: ConsumerProtocolSubscription,
    before: records.ConsumerGroupMemberMetadataValue,
) -> records.ConsumerGroupMemberMetadataValue:
    request: wire.Request = command.request
    after = copy(before)
    after.client_id, after.client_host = command.client_id, command.client_host
    after.instance_id = request.group_instance_id or before.instance_id
    after.rack_id = subscription.rack_id or before.rack_id
    # The first version has only one timeout for both.
    is_said = command.version >= 1 and request.rebalance_timeout_ms >= 0
    timeout_ms = request.rebalance_timeout_ms if is_said else request.session_timeout_ms
    after.rebalance_timeout_ms = timeout_ms
    after.subscribed_topic_names = list(subscription.topics)
    after.subscribed_topic_regex = ""
    after.classic_member_metadata = records.ClassicMemberMetadata(
        request.session_timeout_ms,
        [records.ClassicProtocol(one.name, one.metadata) for one in request.protocols],
    )
    return after


def _join_as_the_last(
    turn: Turn, group: ConsumerGroup, known: ConsumerMember, member: ConsumerMember
) -> wire.Response:
    """It takes the place of the last member of the new protocol: the group is a classic one now.

    If all have what the target says its members go on with it, else all have to join again.
    """
    before = set(known.metadata.subscribed_topic_names)
    is_changed = before != set(member.metadata.subscribed_topic_names)
    is_changed = is_changed or bool(known.metadata.subscribed_topic_regex)
    is_changed = is_changed or any(
        one.owned != group.targets.get(one.id, {}) for one in group.members.values()
    )
    migration.downgrade(turn, group, {known.id}, member)
    if is_changed or group.epoch > group.target_epoch:
        turn.set_due(migration.CONVERTED, group.id)
    else:
        member.epoch = group.epoch
    return _joined(member)


def _joined(member: ConsumerMember) -> wire.Response:
    assert member.classic is not None, "it joined by the classic protocol"
    return wire.Response(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        member_id=member.id,
    )


def _classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, records.ClassicMemberMetadata]:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = static_member(group, instance_id, member_id)
    if member.classic is None:
        message = f"Member {member_id} does not use the classic protocol."
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member, member.classic


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        message = f"The generation {generation} is not the member's epoch, {member.epoch}."
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, message)


def _has_to_rejoin(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """There is a new target, or time for one; it has to give up; or what it waits for is free."""
    if member.epoch < group.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if group.epoch > group.target_epoch and may_assign(turn, group):
        return True
    is_waiting = member.state is MemberState.UNRELEASED_PARTITIONS
    return is_waiting and not group.is_waiting_for_others(member)


def _expect_rejoin(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    if not turn.is_timer_set(REJOIN, group.id, member.id):
        timeout_ms = max(member.metadata.rebalance_timeout_ms, 0)
        turn.set_timer(REJOIN, group.id, member.id, timeout_ms)
