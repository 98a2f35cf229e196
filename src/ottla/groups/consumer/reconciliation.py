"""Brings a member of a consumer group, step by step, from what it owns to what it shall own.

A member first gives up what it shall not own any more, and stays in its epoch until it has; then
it moves to the target's epoch and is given what is free. What others still own it gets later.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.groups.consumer.group import ConsumerMember, MemberState, Owned, Target
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records
from ottla.protocol.messages.consumer_group_heartbeat import TopicPartitions

Reported = list[TopicPartitions] | None  # What a member says that it owns, if it says so.


class Goal(NamedTuple):
    epoch: int
    target: Target
    owners: Mapping[tuple[Uuid, int], str]
    topics: Collection[Uuid]  # What the member reads; the target may be older than that.
    is_subscription_new: bool = False
    replaced: str | None = None  # Whose place the member takes, with all that it owned.


def reconciled(
    member: ConsumerMember, goal: Goal, reported: Reported
) -> records.ConsumerGroupCurrentMemberAssignmentValue | None:
    """The member's next assignment, or None if it stays as it is."""
    is_bound = (
        member.epoch == goal.epoch
        if member.state is MemberState.STABLE
        else member.state is MemberState.UNREVOKED_PARTITIONS
        and _still_owns(reported, member.revoking)
    )
    if not is_bound:
        return _next(member, goal, reported)
    return _trimmed(member, goal, reported) if goal.is_subscription_new else None


def _next(
    member: ConsumerMember, goal: Goal, reported: Reported
) -> records.ConsumerGroupCurrentMemberAssignmentValue | None:
    target = {topic: ids for topic, ids in goal.target.items() if topic in goal.topics}
    assigned: Owned = {}
    revoking: Owned = {}
    for topic, owned in member.assigned.items():
        wanted = target.get(topic, frozenset())
        for index, since in owned.items():
            place = assigned if index in wanted else revoking
            place.setdefault(topic, {})[index] = since
    if revoking and _still_owns(reported, revoking):
        state = MemberState.UNREVOKED_PARTITIONS
        return _changed(member, member.epoch, state, assigned, revoking)
    is_waiting = False
    for topic, wanted in target.items():
        for index in sorted(wanted - set(member.assigned.get(topic, ()))):
            if goal.owners.get((topic, index), member.id) not in (member.id, goal.replaced):
                is_waiting = True
            else:
                assigned.setdefault(topic, {})[index] = goal.epoch
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return _changed(member, goal.epoch, state, assigned, {})


def _trimmed(
    member: ConsumerMember, goal: Goal, reported: Reported
) -> records.ConsumerGroupCurrentMemberAssignmentValue | None:
    """There is no new target yet, but what it does not read any more it gives up at once."""
    gone = [topic for topic in member.assigned if topic not in goal.topics]
    if not gone:
        return None
    assigned = {topic: owned for topic, owned in member.assigned.items() if topic not in gone}
    revoking = dict(member.revoking)
    for topic in gone:
        revoking[topic] = revoking.get(topic, {}) | member.assigned[topic]
    if _still_owns(reported, revoking):
        state = MemberState.UNREVOKED_PARTITIONS
        return _changed(member, member.epoch, state, assigned, revoking)
    return _changed(member, member.epoch, member.state, assigned, member.revoking)


def _still_owns(reported: Reported, revoking: Owned) -> bool:
    if reported is None:
        return True
    return any(
        index in revoking.get(one.topic_id, {}) for one in reported for index in one.partitions
    )


def _changed(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Owned, revoking: Owned
) -> records.ConsumerGroupCurrentMemberAssignmentValue | None:
    now = (member.epoch, member.state, member.assigned, member.revoking)
    if now == (epoch, state, assigned, revoking):
        return None
    return records.ConsumerGroupCurrentMemberAssignmentValue(
        epoch, member.epoch, state, as_record(assigned), as_record(revoking)
    )


def as_record(owned: Owned) -> list[records.CurrentTopicPartitions]:
    return [
        records.CurrentTopicPartitions(topic, list(indexes), list(indexes.values()))
        for topic, indexes in owned.items()
        if indexes
    ]


def is_part_of(reported: Reported, assigned: Owned) -> bool:
    """Whether a member owns nothing but what it was given."""
    if reported is None:
        return False
    return all(
        index in assigned.get(one.topic_id, {}) for one in reported for index in one.partitions
    )
