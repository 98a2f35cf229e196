"""ConsumerGroupHeartbeat: join, stay in and leave a consumer group (KIP-848).

One heartbeat may change the member, and with it the group's epoch, the target assignment of all,
and its own assignment. All that is written together; nothing is changed but by those records.
"""

from copy import copy

from ottla.groups.assignors.assignment import MemberSpec, Partitions
from ottla.groups.consumer_group import (
    LEFT,
    LEFT_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Target,
)
from ottla.groups.consumer_reconciliation import Goal, as_record, is_part_of, reconciled
from ottla.groups.consumer_requests import (
    ASSIGNORS,
    new_metadata,
    updated_metadata,
)
from ottla.groups.consumer_subscription import resolve_expressions, still_used
from ottla.groups.topics import TopicFacts
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records
from ottla.protocol.messages import consumer_group_heartbeat as wire

CONSUMER_SESSION, REVOCATION = "consumer-session", "revocation"

Metadata = records.ConsumerGroupMemberMetadataValue


def heartbeat(turn: Turn, command: GroupCommand, group: ConsumerGroup) -> wire.Response:
    request: wire.Request = command.request
    if request.member_epoch in (LEFT, LEFT_FOR_A_WHILE):
        return _leave(turn, request, group)
    member = _member(turn, request, group)
    is_new = member.id not in group.members
    metadata = updated_metadata(member.metadata, command)
    if is_new or metadata != member.metadata:
        turn.write(records.ConsumerGroupMemberMetadataKey(group.id, member.id), metadata)
    metadata_of = {id_: one.metadata for id_, one in group.members.items()}
    replaced = group.static.get(request.instance_id or "")
    if replaced is not None and replaced != member.id:
        metadata_of.pop(replaced, None)
    is_joining = is_new and replaced is None
    is_changed = is_joining or _reads_differently(member.metadata, metadata)
    metadata_of[member.id] = metadata
    epoch = group.epoch
    if is_changed or group.is_metadata_old:
        epoch = _subscribe(turn, group, metadata_of, is_changed)
    targets, target_epoch = group.targets, group.target_epoch
    if epoch > target_epoch:
        targets, target_epoch = _assign(turn, group, metadata_of, epoch), epoch
    target = targets.get(member.id)
    if target is None:
        target = _kept_target(group, metadata, member.id)
    goal = Goal(target_epoch, target, group.owners)
    return _reconcile(turn, command, group, member, goal)


def _member(turn: Turn, request: wire.Request, group: ConsumerGroup) -> ConsumerMember:
    """The member as it is, or as it begins."""
    known = group.members.get(request.member_id)
    if request.instance_id is not None:
        return _static_member(turn, request, group)
    if request.member_epoch == 0:
        if known is not None:
            return known
        if len(group.members) >= turn.settings.consumer_size_max:
            message = f"The consumer group has reached its maximum capacity of {len(group.members)}"
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, f"{message} members.")
        return ConsumerMember(request.member_id, new_metadata())
    _check_epoch(group.member(request.member_id), request)
    return group.members[request.member_id]


def _static_member(turn: Turn, request: wire.Request, group: ConsumerGroup) -> ConsumerMember:
    """One instance is one member at a time; it may come back under another member id."""
    known_id = group.static.get(request.instance_id or "")
    known = group.members.get(known_id) if known_id is not None else None
    if request.member_epoch != 0:
        if known is None:
            message = f"Instance id {request.instance_id} is unknown."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
        if known.id != request.member_id:
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "The instance id is used by another.")
        _check_epoch(known, request)
        return known
    if known is None:
        return ConsumerMember(request.member_id, new_metadata())
    if known.id == request.member_id:
        return known
    if known.epoch != LEFT_FOR_A_WHILE:
        message = f"Another member {known.id} with the instance id is still in the group."
        raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return _replace(turn, known, request.member_id, group)


def _replace(
    turn: Turn, known: ConsumerMember, member_id: str, group: ConsumerGroup
) -> ConsumerMember:
    """Under its new id it takes over all that was kept for it."""
    target = group.targets.get(known.id, {})
    remove_member(turn, group, known)
    key = records.ConsumerGroupTargetAssignmentMemberKey(group.id, member_id)
    turn.write(records.ConsumerGroupMemberMetadataKey(group.id, member_id), known.metadata)
    turn.write(key, _target_record(target))
    back = copy(known)
    back.id, back.epoch = member_id, known.previous_epoch
    back.state = MemberState.STABLE
    turn.write(
        records.ConsumerGroupCurrentMemberAssignmentKey(group.id, member_id),
        records.ConsumerGroupCurrentMemberAssignmentValue(
            back.epoch, back.epoch, MemberState.STABLE, as_record(back.assigned)
        ),
    )
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
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member epoch {said} is not the one known by the group coordinator "
            f"({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


def _reads_differently(before: Metadata, after: Metadata) -> bool:
    return (
        set(before.subscribed_topic_names) != set(after.subscribed_topic_names)
        or before.subscribed_topic_regex != after.subscribed_topic_regex
        or before.server_assignor != after.server_assignor
    )


def _subscribe(
    turn: Turn, group: ConsumerGroup, metadata_of: dict[str, Metadata], is_changed: bool
) -> int:
    """The group's epoch, a new one if what it reads has changed."""
    expressions = resolve_expressions(turn, group, metadata_of)
    facts = _facts(turn, metadata_of, expressions)
    hashed = group.hash_of(facts)
    group.is_metadata_old = False
    if not is_changed and hashed == group.metadata_hash:
        return group.epoch
    epoch = group.epoch + 1
    value = records.ConsumerGroupMetadataValue(epoch, hashed)
    turn.write(records.ConsumerGroupMetadataKey(group.id), value)
    return epoch


def _facts(
    turn: Turn, metadata_of: dict[str, Metadata], expressions: dict[str, frozenset[str]]
) -> dict[str, TopicFacts]:
    names = {name for one in metadata_of.values() for name in _names(one, expressions)}
    found = {name: turn.around.topics.named(name) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def _names(metadata: Metadata, expressions: dict[str, frozenset[str]]) -> set[str]:
    by_expression = expressions.get(metadata.subscribed_topic_regex or "", frozenset())
    return set(metadata.subscribed_topic_names) | by_expression


def _assign(
    turn: Turn, group: ConsumerGroup, metadata_of: dict[str, Metadata], epoch: int
) -> dict[str, Target]:
    """A new target for everyone; what changed of it is written, the epoch last."""
    expressions = resolve_expressions(turn, group, metadata_of, is_written=True)
    facts = _facts(turn, metadata_of, expressions)
    specs = {}
    for id_, metadata in metadata_of.items():
        topics = {facts[name].id for name in _names(metadata, expressions) if name in facts}
        last = group.targets.get(id_) or _kept_target(group, metadata, id_)
        held = frozenset((topic, index) for topic, indexes in last.items() for index in indexes)
        specs[id_] = MemberSpec(metadata.instance_id, frozenset(topics), held)
    sizes = {one.id: one.partitions for one in facts.values()}
    assignor = ASSIGNORS[_preferred(turn, metadata_of)]
    targets = {id_: _as_target(given) for id_, given in assignor(specs, sizes).items()}
    for id_, target in targets.items():
        if group.targets.get(id_) != target:
            key = records.ConsumerGroupTargetAssignmentMemberKey(group.id, id_)
            turn.write(key, _target_record(target))
    value = records.ConsumerGroupTargetAssignmentMetadataValue(epoch, turn.wall)
    turn.write(records.ConsumerGroupTargetAssignmentMetadataKey(group.id), value)
    return targets


def _kept_target(group: ConsumerGroup, metadata: Metadata, member_id: str) -> Target:
    """What a static member that is back had under its old id."""
    old_id = group.static.get(metadata.instance_id or "", member_id)
    return group.targets.get(old_id, {})


def _preferred(turn: Turn, metadata_of: dict[str, Metadata]) -> str:
    """The assignor that most members ask for, or the first that is configured."""
    votes: dict[str, int] = {}
    for one in metadata_of.values():
        if one.server_assignor is not None:
            votes[one.server_assignor] = votes.get(one.server_assignor, 0) + 1
    return max(votes, key=lambda name: votes[name], default=turn.settings.consumer_assignors[0])


def _reconcile(
    turn: Turn, command: GroupCommand, group: ConsumerGroup, member: ConsumerMember, goal: Goal
) -> wire.Response:
    request: wire.Request = command.request
    value = reconciled(member, goal, request.topic_partitions)
    epoch, state, assigned = member.epoch, member.state, as_record(member.assigned)
    if value is not None:
        key = records.ConsumerGroupCurrentMemberAssignmentKey(group.id, member.id)
        turn.write(key, value)
        epoch, state = value.member_epoch, MemberState(value.state)
        assigned = value.assigned_partitions
    turn.set_timer(CONSUMER_SESSION, group.id, member.id, turn.settings.consumer_session_timeout_ms)
    if state is MemberState.UNREVOKED_PARTITIONS:
        if value is not None:
            timeout_ms = max(member.metadata.rebalance_timeout_ms, 0)
            turn.set_timer(REVOCATION, group.id, member.id, timeout_ms)
    else:
        turn.cancel_timer(REVOCATION, group.id, member.id)
    response = wire.Response(
        member_id=member.id,
        member_epoch=epoch,
        heartbeat_interval_ms=turn.settings.consumer_heartbeat_interval_ms,
    )
    if request.member_epoch == 0 or _is_full(request) or value is not None:
        parts = [wire.TopicPartitions(one.topic_id, one.partitions) for one in assigned]
        response.assignment = wire.Assignment(parts)
    return response


def _is_full(request: wire.Request) -> bool:
    is_subscribing = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return (
        request.rebalance_timeout_ms != -1
        and is_subscribing
        and request.topic_partitions is not None
    )


def _leave(turn: Turn, request: wire.Request, group: ConsumerGroup) -> wire.Response:
    member = group.member(request.member_id) if request.instance_id is None else None
    if member is None:
        known_id = group.static.get(request.instance_id or "")
        if known_id is None:
            message = f"Instance id {request.instance_id} is unknown."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
        if known_id != request.member_id:
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "The instance id is used by another.")
        member = group.members[known_id]
    if request.member_epoch == LEFT_FOR_A_WHILE:
        value = records.ConsumerGroupCurrentMemberAssignmentValue(
            LEFT_FOR_A_WHILE, member.epoch, MemberState.STABLE, as_record(member.assigned)
        )
        turn.write(records.ConsumerGroupCurrentMemberAssignmentKey(group.id, member.id), value)
        turn.cancel_timer(REVOCATION, group.id, member.id)
        turn.set_timer(
            CONSUMER_SESSION, group.id, member.id, turn.settings.consumer_session_timeout_ms
        )
    else:
        fence(turn, group, member)
    return wire.Response(member_id=request.member_id, member_epoch=request.member_epoch)


def fence(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    """The member is out; the others get what was its own, at their next heartbeats."""
    remove_member(turn, group, member)
    left = {id_: one.metadata for id_, one in group.members.items() if id_ != member.id}
    for expression in set(group.expressions) - still_used(left):
        turn.write(records.ConsumerGroupRegularExpressionKey(group.id, expression), None)
    hashed = group.hash_of(_facts(turn, left, group.expressions))
    value = records.ConsumerGroupMetadataValue(group.epoch + 1, hashed)
    turn.write(records.ConsumerGroupMetadataKey(group.id), value)


def remove_member(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    turn.cancel_timer(CONSUMER_SESSION, group.id, member.id)
    turn.cancel_timer(REVOCATION, group.id, member.id)
    keys = (
        records.ConsumerGroupCurrentMemberAssignmentKey,
        records.ConsumerGroupTargetAssignmentMemberKey,
        records.ConsumerGroupMemberMetadataKey,
    )
    for key in keys:
        turn.write(key(group.id, member.id), None)


def _as_target(given: Partitions) -> Target:
    by_topic: dict[Uuid, set[int]] = {}
    for topic, index in given:
        by_topic.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in sorted(by_topic.items())}


def _target_record(target: Target) -> records.ConsumerGroupTargetAssignmentMemberValue:
    return records.ConsumerGroupTargetAssignmentMemberValue(
        [records.TargetTopicPartition(topic, sorted(ids)) for topic, ids in target.items()]
    )
