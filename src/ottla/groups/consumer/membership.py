"""ConsumerGroupHeartbeat: join, stay in and leave a consumer group (KIP-848).

One heartbeat may change the member, and with it the group's epoch, the target assignment of all,
and its own assignment. All that is written together; nothing is changed but by those records.
"""

from copy import copy

from ottla.groups.consumer.assignment import (
    Expressions,
    assign,
    facts_of,
    last_target,
    may_assign,
    names_of,
    subscribe,
    target_record,
)
from ottla.groups.consumer.group import (
    LEFT,
    LEFT_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    owned_of,
)
from ottla.groups.consumer.reconciliation import Goal, Reported, as_record, is_part_of, reconciled
from ottla.groups.consumer.requests import new_metadata, updated_metadata
from ottla.groups.consumer.subscription import still_used
from ottla.groups.topics import metadata_hash
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import consumer_group_records as records
from ottla.protocol.messages import consumer_group_heartbeat as wire

CONSUMER_SESSION, REVOCATION = "consumer-session", "revocation"
REJOIN, RESYNC = "rejoin", "resync"  # What classic members of a consumer group have to do in time.

Metadata = records.ConsumerGroupMemberMetadataValue


def heartbeat(turn: Turn, command: GroupCommand, group: ConsumerGroup) -> wire.Response:
    """The answer to a member that joins or stays."""
    request: wire.Request = command.request
    check_is_not_full(turn, group, request.member_id)
    if request.instance_id is not None:
        member = _static_member(turn, request, group)
    else:
        member = _dynamic_member(request, group)
    metadata = updated_metadata(member.metadata, command)
    after = advance(turn, group, member, metadata, request.topic_partitions)
    times = turn.consumer_times(group.id)
    turn.set_timer(CONSUMER_SESSION, group.id, member.id, times.session_timeout_ms)
    turn.cancel_timer(REJOIN, group.id, member.id)
    turn.cancel_timer(RESYNC, group.id, member.id)
    if after.state is not MemberState.UNREVOKED_PARTITIONS:
        turn.cancel_timer(REVOCATION, group.id, member.id)
    elif (after.assigned, after.revoking) != (member.assigned, member.revoking):
        turn.set_timer(REVOCATION, group.id, member.id, max(metadata.rebalance_timeout_ms, 0))
    response = wire.Response(
        member_id=member.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=times.heartbeat_interval_ms,
    )
    if request.member_epoch == 0 or _is_full(request) or after.assigned != member.assigned:
        parts = [
            wire.TopicPartitions(topic, list(indexes))
            for topic, indexes in after.assigned.items()
            if indexes
        ]
        response.assignment = wire.Assignment(parts)
    return response


def check_is_not_full(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    size_max = turn.settings.consumer_size_max
    if len(group.members) >= size_max and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {size_max} members."
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def _dynamic_member(request: wire.Request, group: ConsumerGroup) -> ConsumerMember:
    """The member as it is, or as it begins."""
    if request.member_epoch == 0:
        known = group.members.get(request.member_id)
        return known or ConsumerMember(request.member_id, new_metadata())
    member = group.member(request.member_id)
    _check_epoch(member, request)
    return member


def _static_member(turn: Turn, request: wire.Request, group: ConsumerGroup) -> ConsumerMember:
    """One instance is one member at a time; it may come back under another member id."""
    assert request.instance_id is not None, "it is a static one"
    if request.member_epoch != 0:
        known = static_member(group, request.instance_id, request.member_id)
        _check_epoch(known, request)
        return known
    known_id = group.static.get(request.instance_id)
    if known_id is None:
        return group.members.get(request.member_id) or ConsumerMember(
            request.member_id, new_metadata()
        )
    known = group.members[known_id]
    if known.id == request.member_id:
        return known
    if not known.is_classic and known.epoch != LEFT_FOR_A_WHILE:
        message = (
            f"Static member {request.member_id} with instance id {request.instance_id} cannot "
            f"join the group because the instance id is owned by {known.id} member."
        )
        raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return replace(turn, known, request.member_id, group)


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """Who bears the instance id; Refusal if that is not the one who asks."""
    known_id = group.static.get(instance_id)
    if known_id is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known_id != member_id:
        message = (
            f"Static member {member_id} with instance id {instance_id} was fenced by "
            f"member {known_id}."
        )
        raise Refusal(ErrorCode.FENCED_INSTANCE_ID, message)
    return group.members[known_id]


def replace(
    turn: Turn, known: ConsumerMember, member_id: str, group: ConsumerGroup
) -> ConsumerMember:
    """Under its new id it takes over all that was kept for it, whichever protocol it spoke."""
    target = group.targets.get(known.id, {})
    remove_member(turn, group, known)
    back = copy(known)
    back.id, back.epoch, back.previous_epoch = member_id, 0, 0
    turn.write(records.ConsumerGroupMemberMetadataKey(group.id, member_id), back.metadata)
    key = records.ConsumerGroupTargetAssignmentMemberKey(group.id, member_id)
    turn.write(key, target_record(target))
    value = records.ConsumerGroupCurrentMemberAssignmentValue(
        0, 0, back.state, as_record(back.assigned), as_record(back.revoking)
    )
    turn.write(records.ConsumerGroupCurrentMemberAssignmentKey(group.id, member_id), value)
    return back


def _check_epoch(member: ConsumerMember, request: wire.Request) -> None:
    said = request.member_epoch
    if said == member.epoch:
        return
    # The answer that told it of its new epoch may have been lost.
    is_last = said == member.previous_epoch and is_part_of(
        request.topic_partitions, member.assigned
    )
    if said > member.epoch or not is_last:
        greater = "greater" if said > member.epoch else "smaller"
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {greater} member epoch ({said}) than the one known "
            f"by the group coordinator ({member.epoch}). The member must abandon all its "
            "partitions and rejoin.",
        )


def advance(
    turn: Turn,
    group: ConsumerGroup,
    member: ConsumerMember,
    metadata: Metadata,
    reported: Reported,
) -> ConsumerMember:
    """Write what its new metadata changes for the group and for itself; the member after that."""
    if metadata is member.metadata and _is_settled(group, member):
        return member
    is_new = member.id not in group.members and _replaced(group, member.id, metadata) is None
    if is_new or metadata != member.metadata:
        turn.write(records.ConsumerGroupMemberMetadataKey(group.id, member.id), metadata)
    is_changed = _reads_differently(member.metadata, metadata)
    goal = _goal(turn, group, member, metadata, is_changed)
    is_stable = member.state is MemberState.STABLE and member.epoch == goal.epoch
    after = copy(member)
    after.metadata = metadata
    if is_stable and not is_changed:
        return after
    value = reconciled(member, goal, reported)
    if value is not None:
        turn.write(records.ConsumerGroupCurrentMemberAssignmentKey(group.id, member.id), value)
        after.epoch, after.state = value.member_epoch, MemberState(value.state)
        after.assigned = owned_of(value.assigned_partitions, after.epoch)
        after.revoking = owned_of(value.partitions_pending_revocation, after.epoch)
    return after


def _is_settled(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether it has all that it shall have, as nearly all have when they say nothing new."""
    return (
        member.state is MemberState.STABLE
        and member.epoch == group.target_epoch == group.epoch
        and not group.is_metadata_old
    )


def _goal(
    turn: Turn, group: ConsumerGroup, member: ConsumerMember, metadata: Metadata, is_changed: bool
) -> Goal:
    """What the member shall own; if need be the group's epoch and target are made anew first."""
    replaced = _replaced(group, member.id, metadata)
    epoch = group.epoch
    expressions: Expressions = group.expressions
    target, target_epoch = last_target(group, metadata, member.id), group.target_epoch
    if is_changed or group.is_metadata_old or (epoch > target_epoch and may_assign(turn, group)):
        metadata_of = {id_: m.metadata for id_, m in group.members.items() if id_ != replaced}
        metadata_of[member.id] = metadata
        if is_changed or group.is_metadata_old:
            epoch, expressions = subscribe(turn, group, metadata_of, is_changed)
        if epoch > target_epoch and may_assign(turn, group):
            targets = assign(turn, group, metadata_of, expressions, epoch)
            target, target_epoch = targets[member.id], epoch
    facts = (turn.around.topics.named(name) for name in names_of(metadata, expressions))
    topics = {one.id for one in facts if one is not None}
    return Goal(target_epoch, target, group.owners, topics, is_changed, replaced)


def _replaced(group: ConsumerGroup, member_id: str, metadata: Metadata) -> str | None:
    """The id under which a static member was known before."""
    known_id = group.static.get(metadata.instance_id or "")
    return known_id if known_id != member_id else None


def _reads_differently(before: Metadata, after: Metadata) -> bool:
    return (
        set(before.subscribed_topic_names) != set(after.subscribed_topic_names)
        or before.subscribed_topic_regex != after.subscribed_topic_regex
    )


def _is_full(request: wire.Request) -> bool:
    is_subscribing = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return (
        request.rebalance_timeout_ms != -1
        and is_subscribing
        and request.topic_partitions is not None
    )


def who_leaves(request: wire.Request, group: ConsumerGroup) -> ConsumerMember:
    assert request.member_epoch in (LEFT, LEFT_FOR_A_WHILE), "it leaves"
    if request.instance_id is None:
        return group.member(request.member_id)
    return static_member(group, request.instance_id, request.member_id)


def leave_for_a_while(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    """A static member that says so is expected back within its session."""
    kept = {topic: dict.fromkeys(indexes, 0) for topic, indexes in member.assigned.items()}
    value = records.ConsumerGroupCurrentMemberAssignmentValue(
        LEFT_FOR_A_WHILE, member.previous_epoch, member.state, as_record(kept)
    )
    turn.write(records.ConsumerGroupCurrentMemberAssignmentKey(group.id, member.id), value)
    turn.cancel_timer(REVOCATION, group.id, member.id)
    session_ms = turn.consumer_times(group.id).session_timeout_ms
    turn.set_timer(CONSUMER_SESSION, group.id, member.id, session_ms)


def remove(turn: Turn, group: ConsumerGroup, members: list[ConsumerMember]) -> None:
    """These are out; the others get what was their own, at their next heartbeats."""
    gone = {member.id for member in members}
    for member in members:
        remove_member(turn, group, member)
    left = {id_: one.metadata for id_, one in group.members.items() if id_ not in gone}
    used = still_used(left)
    for expression in sorted(set(group.expressions) - used):
        turn.write(records.ConsumerGroupRegularExpressionKey(group.id, expression), None)
    hashed = metadata_hash(facts_of(turn, left, group.expressions).values())
    value = records.ConsumerGroupMetadataValue(group.epoch + 1, hashed)
    turn.write(records.ConsumerGroupMetadataKey(group.id), value)


def remove_member(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    cancel_timers(turn, group, member.id)
    keys = (
        records.ConsumerGroupCurrentMemberAssignmentKey,
        records.ConsumerGroupTargetAssignmentMemberKey,
        records.ConsumerGroupMemberMetadataKey,
    )
    for key in keys:
        turn.write(key(group.id, member.id), None)


def cancel_timers(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    for kind in (CONSUMER_SESSION, REVOCATION, REJOIN, RESYNC):
        turn.cancel_timer(kind, group.id, member_id)
