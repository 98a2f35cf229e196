"""A group in use changes its kind: from the classic protocol to the new one (KIP-848), and back.

The first member of the new protocol turns a classic group into a consumer group, with its members
and what they own; they go on with the classic requests. When the last such member is gone, what is
left becomes a classic group again, and rebalances. All of it is written as one: the end of the old
group, the whole of the new one.
"""

from collections.abc import Collection, Mapping, Sequence

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.rebalance import INITIAL, JOIN, SESSION, SYNC, refuse_waiting
from ottla.groups.consumer import membership as consumer_membership
from ottla.groups.consumer.assignment import facts_of, target_record
from ottla.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState, Owned
from ottla.groups.consumer.membership import CONSUMER_SESSION
from ottla.groups.consumer.reconciliation import as_record
from ottla.groups.mixed.embedded_protocol import (
    CustomAssignment,
    assigned_by,
    encoded_assignment,
    owned_by,
    subscription_of,
)
from ottla.groups.topics import metadata_hash
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records
from ottla.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from ottla.protocol.group_records import GroupMetadataKey, GroupRecord

CONVERTED = "converted"  # A classic group that was just made of a consumer group has to rebalance.


def upgrade(turn: Turn, classic: ClassicGroup, instance_id: str | None = None) -> ConsumerGroup:
    """Write the classic group's end and a consumer group of its members; that group, as it is.

    A member that takes a static member's place changes nothing for the others, so that they would
    stay without what a rebalance was about to give them: then the group's epoch is a new one. A
    group that was just made of a consumer group is stable and has its rebalance before it.
    """
    _check_upgrade(turn, classic)
    turn.write(GroupMetadataKey(classic.id), None)
    try:
        members = _converted(turn, classic)
    except ProtocolError as error:
        raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed") from error
    except CustomAssignment as error:
        raise _cannot_upgrade(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade",
        ) from error
    group = ConsumerGroup(classic.id)
    is_unsettled = classic.is_converted or classic.state is not ClassicState.STABLE
    is_replaced = instance_id in classic.static
    group_epoch = classic.generation + (is_unsettled and is_replaced)
    for record in _records(turn, classic, members, group_epoch):
        turn.write(*record)
        group.restore(*record)
    return group


def let_go(turn: Turn, classic: ClassicGroup) -> None:
    """Its members are a consumer group's now; those who wait have to ask that one."""
    for kind in (JOIN, INITIAL, SYNC, CONVERTED):
        turn.cancel_timer(kind, classic.id)
    for member_id in classic.pending:
        turn.cancel_timer(SESSION, classic.id, member_id)
    for member in classic.members.values():
        refuse_waiting(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
        turn.cancel_timer(SESSION, classic.id, member.id)
        turn.set_timer(CONSUMER_SESSION, classic.id, member.id, member.session_timeout_ms)


def fence(turn: Turn, group: ConsumerGroup, members: list[ConsumerMember]) -> None:
    """These are out. If only classic members are left, so is the group's new protocol."""
    leaving = {member.id for member in members}
    left = len(group.members) - len(leaving)
    if left > 0 and _may_downgrade(turn, group, leaving, left):
        downgrade(turn, group, leaving)
        turn.set_due(CONVERTED, group.id)
    elif members:
        consumer_membership.remove(turn, group, members)


def is_last_replaced(turn: Turn, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Whether a classic member that takes this one's place turns the group into a classic one."""
    return not replaced.is_classic and _may_downgrade(
        turn, group, {replaced.id}, len(group.members)
    )


def downgrade(
    turn: Turn,
    group: ConsumerGroup,
    leaving: Collection[str],
    joining: ConsumerMember | None = None,
) -> None:
    """Write the consumer group's end and a classic group of those who stay, or join.

    Each has what it owns, also what it shall give up. Its target may be what another still reads.
    """
    write_end(turn, group)
    classic = ClassicGroup(group.id, generation=group.epoch, state_timestamp=turn.wall)
    owned = {id_: member.owned for id_, member in group.members.items()}
    for member in group.members.values():
        consumer_membership.cancel_timers(turn, group, member.id)
        if member.id not in leaving:
            classic.add(_as_classic(member), CONSUMER_PROTOCOL_TYPE)
    if joining is not None:
        classic.add(_as_classic(joining), CONSUMER_PROTOCOL_TYPE)
        for member_id in leaving:
            owned[joining.id] = owned.get(member_id, {})
    classic.protocol = classic.select_protocol()
    assignments = {
        id_: encoded_assignment(
            owned.get(id_, {}), one.metadata(classic.protocol), turn.around.topics
        )
        for id_, one in classic.members.items()
    }
    turn.write(GroupMetadataKey(group.id), classic.record(assignments))
    for one in classic.members.values():
        turn.set_timer(SESSION, group.id, one.id, one.session_timeout_ms)


def write_end(turn: Turn, group: ConsumerGroup) -> None:
    """The group is gone; in Kafka's order, which it insists on when it reads them."""
    ids = list(group.members)
    for id_ in ids:
        turn.write(records.ConsumerGroupCurrentMemberAssignmentKey(group.id, id_), None)
    for id_ in ids:
        turn.write(records.ConsumerGroupTargetAssignmentMemberKey(group.id, id_), None)
    turn.write(records.ConsumerGroupTargetAssignmentMetadataKey(group.id), None)
    for id_ in ids:
        turn.write(records.ConsumerGroupMemberMetadataKey(group.id, id_), None)
    for expression in sorted(group.expressions):
        turn.write(records.ConsumerGroupRegularExpressionKey(group.id, expression), None)
    turn.write(records.ConsumerGroupPartitionMetadataKey(group.id), None)
    turn.write(records.ConsumerGroupMetadataKey(group.id), None)


def _check_upgrade(turn: Turn, classic: ClassicGroup) -> None:
    if not turn.settings.migration.is_upgrade_allowed:
        raise _cannot_upgrade(classic, "online upgrade is disabled")
    if not classic.is_consumers:
        raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > turn.settings.consumer_size_max:
        raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size")


def _cannot_upgrade(classic: ClassicGroup, why: str) -> Refusal:
    message = f"Cannot upgrade classic group {classic.id} to consumer group because {why}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _may_downgrade(
    turn: Turn, group: ConsumerGroup, leaving: Collection[str], size_after: int
) -> bool:
    return (
        group.are_all_classic_except(leaving)
        and turn.settings.migration.is_downgrade_allowed
        and size_after <= turn.settings.size_max
    )


def _converted(turn: Turn, classic: ClassicGroup) -> list[ConsumerMember]:
    """Members with their last assignment, in the generation that is now their epoch.

    A cooperative member may still own partitions that the assignment takes from it: it has not
    received the assignment, or not revoked them yet. Those are being revoked.
    """
    topics, taken = turn.around.topics, set[tuple[Uuid, int]]()
    epoch = classic.generation
    members = []
    for member in classic.members.values():
        metadata = _member_metadata(member, classic.protocol)
        assigned = _not_taken(assigned_by(member.assignment, topics), taken, epoch)
        members.append(
            ConsumerMember(member.id, metadata, epoch, epoch, MemberState.STABLE, assigned)
        )
    for member, converted in zip(classic.members.values(), members, strict=True):
        subscription = subscription_of(_metadata(member, classic.protocol))
        still_owned = {one.topic_id: one.partitions for one in owned_by(subscription, topics)}
        converted.revoking = _not_taken(still_owned, taken, epoch)
        if converted.revoking:
            converted.state = MemberState.UNREVOKED_PARTITIONS
    return members


def _not_taken(
    partitions: Mapping[Uuid, Sequence[int]], taken: set[tuple[Uuid, int]], epoch: int
) -> Owned:
    """The partitions that no member has yet, which are taken from now on."""
    owned = {}
    for topic, indexes in partitions.items():
        mine = [index for index in indexes if (topic, index) not in taken]
        taken.update((topic, index) for index in mine)
        if mine:
            owned[topic] = dict.fromkeys(mine, epoch)
    return owned


def _member_metadata(
    member: ClassicMember, protocol: str | None
) -> records.ConsumerGroupMemberMetadataValue:
    subscription = subscription_of(_metadata(member, protocol))
    return records.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(subscription.topics),
        subscribed_topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=records.ClassicMemberMetadata(
            member.session_timeout_ms,
            [records.ClassicProtocol(*protocol) for protocol in member.protocols],
        ),
    )


def _metadata(member: ClassicMember, protocol: str | None) -> bytes:
    """All its protocols say the same; before the first generation none is chosen."""
    return member.metadata(protocol) or next((data for _, data in member.protocols), b"")


def _records(
    turn: Turn, classic: ClassicGroup, members: list[ConsumerMember], group_epoch: int
) -> list[GroupRecord]:
    id_, epoch = classic.id, classic.generation
    facts = facts_of(turn, {m.id: m.metadata for m in members}, {})
    hashed = metadata_hash(facts.values())
    written: list[GroupRecord] = [
        GroupRecord(records.ConsumerGroupMemberMetadataKey(id_, m.id), m.metadata) for m in members
    ]
    value = records.ConsumerGroupMetadataValue(group_epoch, hashed)
    written.append(GroupRecord(records.ConsumerGroupMetadataKey(id_), value))
    for member in members:
        target = {topic: frozenset(indexes) for topic, indexes in member.assigned.items()}
        key = records.ConsumerGroupTargetAssignmentMemberKey(id_, member.id)
        written.append(GroupRecord(key, target_record(target)))
    made = records.ConsumerGroupTargetAssignmentMetadataValue(epoch, 0)
    written.append(GroupRecord(records.ConsumerGroupTargetAssignmentMetadataKey(id_), made))
    for member in members:
        assignment = records.ConsumerGroupCurrentMemberAssignmentValue(
            epoch, epoch, member.state, as_record(member.assigned), as_record(member.revoking)
        )
        key_of = records.ConsumerGroupCurrentMemberAssignmentKey(id_, member.id)
        written.append(GroupRecord(key_of, assignment))
    return written


def _as_classic(member: ConsumerMember) -> ClassicMember:
    classic, metadata = member.classic, member.metadata
    assert classic is not None, "only classic members are left"
    session_ms, timeout_ms = classic.session_timeout_ms, metadata.rebalance_timeout_ms
    return ClassicMember(
        member.id,
        metadata.instance_id,
        metadata.client_id,
        metadata.client_host,
        # The first version of JoinGroup has only one timeout for both.
        timeout_ms if timeout_ms >= 0 else session_ms,
        session_ms,
        [(protocol.name, protocol.metadata) for protocol in classic.supported_protocols],
    )
