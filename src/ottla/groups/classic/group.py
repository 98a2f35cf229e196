"""A classic group: its members, its generation, and in which phase of a rebalance it is.

What is in the group's record is durable: generation, protocol, leader, members, assignments. All
else (who waits, who has a member id but has not joined) starts empty when the log is loaded.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.machine import Ticket
from ottla.model.types import Millis
from ottla.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolSubscription,
    decode_versioned,
)
from ottla.protocol.group_records import GroupMetadataValue, MemberMetadata


class ClassicState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"  # Members join.
    COMPLETING_REBALANCE = "CompletingRebalance"  # They wait for the leader's assignment.
    STABLE = "Stable"


@dataclass(slots=True)
class ClassicMember:
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    session_timeout_ms: Millis
    protocols: list[tuple[str, bytes]]  # By preference.
    assignment: bytes = b""
    joining: Ticket | None = None  # Who waits for the answer to its JoinGroup,
    syncing: Ticket | None = None  # or SyncGroup.
    is_new: bool = False  # Until its first JoinGroup is answered.

    def metadata(self, protocol: str | None) -> bytes:
        return dict(self.protocols).get(protocol or "", b"")

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whoever waits for us cannot send heartbeats; a new one is not trusted for ever."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)


@dataclass(slots=True)
class ClassicGroup:
    id: str
    state: ClassicState = ClassicState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_timestamp: int = -1
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)  # Member ids by instance id.
    pending: set[str] = field(default_factory=set)  # Were given an id, have not joined with it.
    pending_sync: set[str] = field(default_factory=set)
    was_empty: bool = False  # Before the rebalance that is going on.
    is_member_new: bool = False  # Someone joined during the initial delay.
    initial_remaining_ms: Millis = 0
    is_recorded: bool = False  # Its record is in the log.
    is_converted: bool = False  # It was a consumer group, and has not rebalanced since.

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def rebalance_timeout_ms(self) -> Millis:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(m.joining is not None for m in self.members.values())

    @property
    def is_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def supports(self, protocol_type: str, protocols: list[tuple[str, bytes]]) -> bool:
        """Whether a member with these could be in the group beside the others."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        counts = self._votes_possible()
        return any(counts[name] == len(self.members) for name, _ in protocols)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support."""
        assert self.members, "an empty group has no protocol"
        counts = self._votes_possible()
        common = {name for name, count in counts.items() if count == len(self.members)}
        votes = Counter(
            next((name for name, _ in member.protocols if name in common), member.protocols[0][0])
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that asks; Refusal if it is not, or another took its place."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.leader = self.leader or member.id
        self.members[member.id] = member
        if member.instance_id is not None:
            assert member.instance_id not in self.static, "an instance is one member"
            self.static[member.instance_id] = member.id
        self.pending.discard(member.id)

    def remove(self, member_id: str) -> ClassicMember:
        member = self.members.pop(member_id)
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_sync.discard(member_id)
        return member

    def subscribed_topics(self) -> set[str] | None:
        """What its consumers read, None if that cannot be told from their metadata."""
        if not self.is_consumers:
            return None
        if not self.members:
            return set()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                subscription, _ = decode_versioned(
                    ConsumerProtocolSubscription, member.metadata(self.protocol)
                )
            except ProtocolError:
                return None
            topics.update(subscription.topics)
        return topics

    def record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """The group as it is to be kept, each member with its assignment."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_timestamp,
            members=[
                MemberMetadata(
                    member.id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata(self.protocol),
                    assignments.get(member.id, b""),
                )
                for member in self.members.values()
            ],
        )

    def restore(self, value: GroupMetadataValue) -> None:
        """Become what the record says; who waits is kept, if it is a member."""
        known = self.members
        self.protocol_type = value.protocol_type or None
        self.generation, self.protocol = value.generation, value.protocol
        self.leader, self.state_timestamp = value.leader, value.current_state_timestamp
        self.members = {}
        self.static = {}
        for kept in value.members:
            member = known.get(kept.member_id) or _restored(kept, value.protocol)
            member.assignment = kept.assignment
            self.members[member.id] = member
            if member.instance_id is not None:
                self.static[member.instance_id] = member.id
        self.state = ClassicState.STABLE if self.members else ClassicState.EMPTY
        self.is_recorded = True

    def _votes_possible(self) -> Counter[str]:
        return Counter(
            name for member in self.members.values() for name, _ in dict(member.protocols).items()
        )


def _restored(kept: MemberMetadata, protocol: str | None) -> ClassicMember:
    timeout = kept.rebalance_timeout if kept.rebalance_timeout >= 0 else kept.session_timeout
    return ClassicMember(
        kept.member_id,
        kept.group_instance_id,
        kept.client_id,
        kept.client_host,
        timeout,
        kept.session_timeout,
        [(protocol or "", kept.subscription)],
    )
