"""All consumer groups (KIP-848) of a coordinator: what their records mean, what time brings.

Some of the members may still speak the classic protocol: see `mixed_membership`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ottla.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState
from ottla.groups.consumer.membership import CONSUMER_SESSION, REJOIN, RESYNC, REVOCATION
from ottla.groups.mixed.migration import fence, write_end
from ottla.groups.offsets.offsets import Committed, forget, is_expired
from ottla.groups.timers import TimerKey
from ottla.groups.topics import Topics
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records
from ottla.protocol.messages import (
    consumer_group_describe,
    list_groups,
    offset_commit,
    offset_fetch,
)

# ruff: noqa: ANN401  Keys and values are of the class that the type of their record has.

CONSUMER = "consumer"
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1  # In ConsumerGroupDescribe.
EPOCHS_SINCE = 9  # In OffsetCommit: before, a client cannot be a member of such a group.


class ConsumerGroups:
    timer_kinds: Final = frozenset({CONSUMER_SESSION, REVOCATION, REJOIN, RESYNC})

    def __init__(self) -> None:
        self.by_id: dict[str, ConsumerGroup] = {}

    def apply(self, key: Any, value: Any) -> None:
        group = self.by_id.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self.by_id[key.group_id] = ConsumerGroup(key.group_id)
        if isinstance(key, records.ConsumerGroupMetadataKey) and value is None:
            del self.by_id[key.group_id]
        else:
            group.restore(key, value)

    def loaded(self, turn: Turn) -> None:
        """From now on the members have to be heard of."""
        for group in self.by_id.values():
            session_ms = turn.consumer_times(group.id).session_timeout_ms
            for member in group.members.values():
                own_ms = member.classic.session_timeout_ms if member.classic else session_ms
                turn.set_timer(CONSUMER_SESSION, group.id, member.id, own_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
                    timeout_ms = max(member.metadata.rebalance_timeout_ms, 0)
                    turn.set_timer(REVOCATION, group.id, member.id, timeout_ms)

    def time_came(self, turn: Turn, keys: Iterable[TimerKey]) -> None:
        """Members were silent too long, or did not do in time what they had to."""
        late: dict[str, dict[str, ConsumerMember]] = {}
        for key in keys:
            group = self.by_id.get(key.group_id)
            member = group.members.get(key.member_id) if group is not None else None
            if member is None:
                continue
            if key.kind == REVOCATION and member.state is not MemberState.UNREVOKED_PARTITIONS:
                continue
            late.setdefault(key.group_id, {})[member.id] = member
        # Together, since what is written is only seen afterwards.
        for group_id, members in late.items():
            fence(turn, self.by_id[group_id], list(members.values()))

    def topics_changed(self) -> None:
        for group in self.by_id.values():
            group.is_metadata_old = True

    def listed(self) -> list[list_groups.ListedGroup]:
        return [
            list_groups.ListedGroup(group.id, CONSUMER, group.state, CONSUMER)
            for group in self.by_id.values()
        ]

    def describe(
        self, turn: Turn, group_id: str, _version: int
    ) -> consumer_group_describe.DescribedGroup:
        group = self.by_id.get(group_id)
        if group is None:
            refusal = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            return consumer_group_describe.DescribedGroup(refusal.code, refusal.message, group_id)
        topics = turn.around.topics
        return consumer_group_describe.DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=_assignor(group, turn.settings.consumer_assignors[0]),
            members=[_described(member, group, topics) for member in group.members.values()],
        )

    def check_commit(self, request: offset_commit.Request, version: int) -> None:
        group = self.by_id[request.group_id]
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and group.is_empty:
            return
        member = group.member(request.member_id)
        if version < EPOCHS_SINCE and not member.is_classic:
            message = "The group uses the new protocol, which needs OffsetCommit version 9."
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, message)
        if epoch == member.epoch:
            return
        # What it was given before that epoch, and still has, it may commit late.
        is_stale = epoch < 0 or epoch > member.epoch
        if is_stale or any(since > epoch for since in _given(member, request, epoch)):
            raise _stale(member)

    def check_fetch(self, request: offset_fetch.OffsetFetchRequestGroup) -> None:
        group = self.by_id.get(request.group_id)
        if group is None or (request.member_id is None and request.member_epoch < 0):
            return
        member = group.member(request.member_id or "")
        if request.member_epoch != member.epoch:
            raise _stale(member)

    def delete(self, turn: Turn, group_id: str, committed: Committed) -> None:
        group = self.by_id[group_id]
        if not group.is_empty:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)
        for partition in list(committed):
            forget(turn, group_id, partition.topic, partition.partition)
        write_end(turn, group)

    def expire(self, turn: Turn, group_id: str, committed: Committed) -> None:
        group = self.by_id[group_id]
        subscribed = group.subscribed_topics()
        gone = [
            partition
            for partition, value in committed.items()
            if partition.topic not in subscribed
            and is_expired(value, turn.wall, turn.settings.offsets_retention_ms, None)
        ]
        for partition in gone:
            forget(turn, group_id, partition.topic, partition.partition)
        if group.is_empty and len(gone) == len(committed):
            write_end(turn, group)


def _given(member: ConsumerMember, request: offset_commit.Request, epoch: int) -> Iterator[int]:
    """Since which epoch it has each of the partitions; what it never had, it has not had then."""
    for topic in request.topics:
        for part in topic.partitions:
            index = part.partition_index
            since = member.assigned.get(topic.topic_id, {}).get(index)
            if since is None:
                since = member.revoking.get(topic.topic_id, {}).get(index)
            yield epoch + 1 if since is None else since


def _stale(member: ConsumerMember) -> Refusal:
    code = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
    return Refusal(code, f"The member epoch is {member.epoch}.")


def _assignor(group: ConsumerGroup, default: str) -> str:
    wanted = [m.metadata.server_assignor for m in group.members.values()]
    named = [name for name in wanted if name is not None]
    return max(named, key=named.count, default=default)


def _described(
    member: ConsumerMember, group: ConsumerGroup, topics: Topics
) -> consumer_group_describe.Member:
    metadata = member.metadata
    owned = {topic: list(indexes) for topic, indexes in member.assigned.items()}
    for topic, indexes in member.revoking.items():  # It has them until it says otherwise.
        owned[topic] = sorted([*owned.get(topic, ()), *indexes])
    target = {t: sorted(i) for t, i in group.targets.get(member.id, {}).items()}
    return consumer_group_describe.Member(
        member.id,
        metadata.instance_id,
        metadata.rack_id,
        member.epoch,
        metadata.client_id,
        metadata.client_host,
        sorted(metadata.subscribed_topic_names),
        metadata.subscribed_topic_regex or "",
        _assignment(owned, topics),
        _assignment(target, topics),
        CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(owned: dict[Uuid, list[int]], topics: Topics) -> consumer_group_describe.Assignment:
    return consumer_group_describe.Assignment(
        [
            consumer_group_describe.TopicPartitions(facts.id, facts.name, indexes)
            for topic_id, indexes in owned.items()
            if (facts := topics.by_id(topic_id)) is not None
        ]
    )
