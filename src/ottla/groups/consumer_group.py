"""A consumer group (KIP-848): its members, what each shall own and what each owns.

Everything here is durable: it is only changed by applying records. A partition belongs to at most
one member at a time; until its owner has given it up, nobody else is given it.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from ottla.groups.topics import TopicFacts, Topics, metadata_hash
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records

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


@dataclass(slots=True)
class ConsumerGroup:
    id: str
    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
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
        member.assigned = _owned(value.assigned_partitions, value.member_epoch)
        member.revoking = _owned(value.partitions_pending_revocation, value.member_epoch)
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

    def facts(self, names: set[str], topics: Topics) -> dict[str, TopicFacts]:
        found = {name: topics.named(name) for name in names}
        return {name: one for name, one in found.items() if one is not None}

    def hash_of(self, facts: dict[str, TopicFacts]) -> int:
        return metadata_hash(facts.values())

    def _disown(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic, indexes in owned.items():
                for index in indexes:
                    if self.owners.get((topic, index)) == member.id:
                        del self.owners[topic, index]


def _owned(parts: list[records.CurrentTopicPartitions], epoch: int) -> Owned:
    """An older Kafka does not say when each partition was given."""
    owned: Owned = {}
    for one in parts:
        epochs = one.assignment_epochs or [epoch] * len(one.partitions)
        owned[one.topic_id] = dict(zip(one.partitions, epochs, strict=True))
    return owned
