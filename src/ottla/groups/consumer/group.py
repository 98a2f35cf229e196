"""A consumer group (KIP-848): its members, what each shall own and what each owns.

Everything here is durable: it is only changed by applying records. A partition belongs to at most
one member at a time; until its owner has given it up, nobody else is given it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records
from ottla.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

# ruff: noqa: ANN401  Keys and values are of the class that the type of their record has.

Owned = dict[Uuid, dict[int, int]]  # The epoch in which each partition was given, by topic id.
Target = dict[Uuid, frozenset[int]]

LEFT, LEFT_FOR_A_WHILE = -1, -2  # Member epochs of those who leave; static ones may come back.


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # It still has to give up some.
    UNRELEASED_PARTITIONS = 2  # Others still have to give up what it shall own.


@dataclass(slots=True)
class ConsumerMember:
    id: str
    metadata: records.ConsumerGroupMemberMetadataValue
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)

    @property
    def classic(self) -> records.ClassicMemberMetadata | None:
        """What it said in JoinGroup, if it speaks the classic protocol."""
        return self.metadata.classic_member_metadata

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def owned(self) -> Target:
        """What nobody else may have: what it was given, and what it has not given up yet."""
        topics = self.assigned.keys() | self.revoking.keys()
        return {
            topic: frozenset(self.assigned.get(topic, {})) | frozenset(self.revoking.get(topic, {}))
            for topic in sorted(topics)
        }


@dataclass(slots=True)
class ConsumerGroup:
    id: str
    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
    target_timestamp: int = 0  # When the target was made; 0 if it was taken from a classic group.
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    expressions: dict[str, frozenset[str]] = field(default_factory=dict)  # And their topics.
    owners: dict[tuple[Uuid, int], str] = field(default_factory=dict)
    is_metadata_old: bool = True  # Topics changed, so what it reads must be looked up again.

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        for member in self.members.values():
            if member.epoch != self.target_epoch or member.state is not MemberState.STABLE:
                return "Reconciling"
        return "Stable"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.id}."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def subscribed(self, metadata: records.ConsumerGroupMemberMetadataValue) -> set[str]:
        """The topics that a member asks for by name or by expression, there or not."""
        names = set(metadata.subscribed_topic_names)
        if metadata.subscribed_topic_regex:
            names |= self.expressions.get(metadata.subscribed_topic_regex, frozenset())
        return names

    def subscribed_topics(self) -> set[str]:
        return {name for m in self.members.values() for name in self.subscribed(m.metadata)}

    def are_all_classic_except(self, leaving: Collection[str]) -> bool:
        return all(m.is_classic for id_, m in self.members.items() if id_ not in leaving)

    def supports_classic(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether all its classic members know one of these protocols."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        known = [
            {protocol.name for protocol in classic.supported_protocols}
            for member in self.members.values()
            if (classic := member.classic) is not None
        ]
        return any(all(name in one for one in known) for name in names)

    def is_waiting_for_others(self, member: ConsumerMember) -> bool:
        """Whether something that it shall own is not free yet."""
        return any(
            (topic, index) in self.owners
            for topic, indexes in self.targets.get(member.id, {}).items()
            for index in indexes - set(member.assigned.get(topic, ()))
        )

    def restore(self, key: Any, value: Any) -> None:
        """Become what one of its records says; its end is not for itself to see."""
        match key:
            case records.ConsumerGroupMetadataKey():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case records.ConsumerGroupMemberMetadataKey():
                self.restore_member(key.member_id, value)
            case records.ConsumerGroupTargetAssignmentMetadataKey():
                self.target_epoch = 0 if value is None else value.assignment_epoch
                self.target_timestamp = 0 if value is None else value.assignment_timestamp
            case records.ConsumerGroupTargetAssignmentMemberKey():
                self.restore_target(key.member_id, value)
            case records.ConsumerGroupCurrentMemberAssignmentKey():
                self.restore_assignment(key.member_id, value)
            case records.ConsumerGroupRegularExpressionKey():
                self.expressions.pop(key.regular_expression, None)
                if value is not None:
                    self.expressions[key.regular_expression] = frozenset(value.topics)

    def restore_member(
        self, member_id: str, value: records.ConsumerGroupMemberMetadataValue | None
    ) -> None:
        if value is None:
            gone = self.members.pop(member_id, None)
            if gone is not None:
                self._disown(gone)
                instance = gone.metadata.instance_id
                if instance is not None and self.static.get(instance) == member_id:
                    del self.static[instance]
            return
        member = self.members.get(member_id)
        if member is None:
            self.members[member_id] = ConsumerMember(member_id, value)
        else:
            member.metadata = value
        if value.instance_id is not None:
            self.static[value.instance_id] = member_id

    def restore_assignment(
        self, member_id: str, value: records.ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        self._disown(member)
        if value is None:
            member.epoch, member.previous_epoch = 0, -1
            member.state, member.assigned, member.revoking = MemberState.STABLE, {}, {}
            return
        member.epoch, member.previous_epoch = value.member_epoch, value.previous_member_epoch
        member.state = MemberState(value.state)
        member.assigned = owned_of(value.assigned_partitions, value.member_epoch)
        member.revoking = owned_of(value.partitions_pending_revocation, value.member_epoch)
        for owned in (member.assigned, member.revoking):
            for topic, indexes in owned.items():
                for index in indexes:
                    self.owners[topic, index] = member_id

    def restore_target(
        self, member_id: str, value: records.ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = {
                one.topic_id: frozenset(one.partitions) for one in value.topic_partitions
            }

    def _disown(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic, indexes in owned.items():
                for index in indexes:
                    if self.owners.get((topic, index)) == member.id:
                        del self.owners[topic, index]


def owned_of(parts: list[records.CurrentTopicPartitions], epoch: int) -> Owned:
    """An older Kafka does not say when each partition was given."""
    owned: Owned = {}
    for one in parts:
        epochs = one.assignment_epochs or [epoch] * len(one.partitions)
        owned[one.topic_id] = dict(zip(one.partitions, epochs, strict=True))
    return owned
