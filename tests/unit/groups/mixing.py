"""Classic consumers that do what clients do: join, lead, sync, heartbeat, revoke, rejoin."""

from typing import Any

from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_versioned,
    encode_versioned,
)
from ottla.protocol.messages import heartbeat, join_group, leave_group, sync_group
from tests.unit.groups.consuming import ConsumerWorld, Owned
from tests.unit.groups.driving import GROUP

# ruff: noqa: ANN401  Replies are of many classes.

EAGER, COOPERATIVE = "range", "cooperative-sticky"
SESSION_MS = 10_000
ROUND_MS = 1100
# The leaving of a member may be lost with a coordinator: its session ends, and the others hear it.
QUIET_ROUNDS = SESSION_MS // ROUND_MS + 3


class ClassicConsumer:
    def __init__(
        self, world: ConsumerWorld, *topics: str, protocol: str = EAGER, instance: str | None = None
    ) -> None:
        self.world, self.topics, self.protocol = world, topics or ("t",), protocol
        self.instance = instance
        self.id = ""
        self.generation = -1
        self.owned: Owned = frozenset()
        self.is_stable = False
        self.error = 0
        self.joining: list[Any] | None = None
        self.syncing: list[Any] | None = None

    @property
    def is_eager(self) -> bool:
        return self.protocol == EAGER

    def step(self) -> None:
        """Whatever comes next: read an answer, join, or send a heartbeat."""
        if self.joining is not None:
            if self.joining:
                (reply,), self.joining = self.joining, None
                self._joined(reply)
        elif self.syncing is not None:
            if self.syncing:
                (reply,), self.syncing = self.syncing, None
                self._synced(reply)
        elif self.is_stable:
            self._beat()
        else:
            self.join()

    def join(self) -> None:
        if self.is_eager:
            self.owned = frozenset()
        owned = [
            SubscriptionTopicPartition(topic, sorted(i for t, i in self.owned if t == topic))
            for topic in sorted({topic for topic, _ in self.owned})
        ]
        data = encode_versioned(
            ConsumerProtocolSubscription(list(self.topics), None, owned, self.generation), 2
        )
        request = join_group.Request(
            GROUP, SESSION_MS, 30_000, self.id, self.instance, "consumer",
            [join_group.JoinGroupRequestProtocol(self.protocol, data)],
        )  # fmt: skip
        self.joining = self.world.ask(request)

    def leave(self) -> Any:
        one = leave_group.MemberIdentity(self.id, self.instance)
        reply = self.world.reply(leave_group.Request(GROUP, members=[one]))
        self._lose()
        return reply

    def _joined(self, reply: Any) -> None:
        if isinstance(reply, Refusal) or reply.error_code:
            self._refused(reply)
            if not isinstance(reply, Refusal) and reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.id = reply.member_id
            return
        self.error, self.id, self.generation = 0, reply.member_id, reply.generation_id
        given = self._assign(reply) if reply.leader == self.id else {}
        request = sync_group.Request(
            GROUP, self.generation, self.id, self.instance, "consumer", reply.protocol_name,
            [sync_group.SyncGroupRequestAssignment(*one) for one in given.items()],
        )  # fmt: skip
        self.syncing = self.world.ask(request)

    def _synced(self, reply: Any) -> None:
        if isinstance(reply, Refusal) or reply.error_code:
            self._refused(reply)
            return
        given = frozenset[tuple[str, int]]()
        if reply.assignment:
            assignment, _ = decode_versioned(ConsumerProtocolAssignment, reply.assignment)
            given = frozenset(
                (one.topic, index)
                for one in assignment.assigned_partitions
                for index in one.partitions
            )
        # A cooperative member that had to give something up joins again to say so.
        self.is_stable = self.is_eager or self.owned <= given
        self.owned = given

    def _beat(self) -> None:
        reply = self.world.reply(heartbeat.Request(GROUP, self.generation, self.id, self.instance))
        if isinstance(reply, Refusal) or reply.error_code:
            self._refused(reply)

    def _refused(self, reply: Any) -> None:
        self.error = reply.code if isinstance(reply, Refusal) else reply.error_code
        self.is_stable = False
        if self.error == ErrorCode.NOT_COORDINATOR:
            self.is_stable = self.generation >= 0 and self.joining is None and bool(self.owned)
        elif self.error != ErrorCode.REBALANCE_IN_PROGRESS:
            keeps_id = self.error == ErrorCode.ILLEGAL_GENERATION
            kept = self.id if keeps_id else ""
            self._lose()
            self.id = kept

    def _lose(self) -> None:
        self.id, self.generation, self.owned, self.is_stable = "", -1, frozenset(), False
        self.joining = self.syncing = None

    def _assign(self, reply: Any) -> dict[str, bytes]:
        """As a range assignor does it; a cooperative one leaves out what others still own."""
        wanted: dict[str, list[str]] = {}
        owner: dict[tuple[str, int], str] = {}
        for member in reply.members:
            subscription, _ = decode_versioned(ConsumerProtocolSubscription, member.metadata)
            for topic in subscription.topics:
                wanted.setdefault(topic, []).append(member.member_id)
            for one in subscription.owned_partitions:
                owner.update(((one.topic, index), member.member_id) for index in one.partitions)
        given: dict[str, list[AssignmentTopicPartition]] = {m.member_id: [] for m in reply.members}
        for topic, readers in sorted(wanted.items()):
            for index in range(self.world.topics.sizes.get(topic, 0)):
                reader = sorted(readers)[index % len(readers)]
                if owner.get((topic, index), reader) == reader:
                    given[reader].append(AssignmentTopicPartition(topic, [index]))
        return {
            id_: encode_versioned(ConsumerProtocolAssignment(_merged(parts)), 1)
            for id_, parts in given.items()
        }


def _merged(parts: list[AssignmentTopicPartition]) -> list[AssignmentTopicPartition]:
    by_topic: dict[str, list[int]] = {}
    for one in parts:
        by_topic.setdefault(one.topic, []).extend(one.partitions)
    return [AssignmentTopicPartition(*one) for one in by_topic.items()]


def settle_all(world: ConsumerWorld, *members: Any, rounds: int = 60) -> None:
    """Everyone goes on, and time with them, until nothing changes any more."""
    quiet = 0
    for _ in range(rounds):
        before = [_seen(member) for member in members]
        for member in members:
            member.step() if isinstance(member, ClassicConsumer) else member.beat()
        world.pass_time(ROUND_MS)
        quiet = quiet + 1 if before == [_seen(member) for member in members] else 0
        if quiet == QUIET_ROUNDS and all(getattr(member, "is_stable", True) for member in members):
            return
    raise AssertionError(f"it never settles: {[_seen(member) for member in members]}")


def _seen(member: Any) -> tuple[Any, ...]:
    return (
        member.owned,
        getattr(member, "epoch", None),
        getattr(member, "generation", None),
        getattr(member, "is_stable", None),
    )
