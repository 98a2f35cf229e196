"""Members of classic groups: eager ones that speak the wire's messages, and Ottla's own client.

An eager member gives up all it owns before it joins again, and takes what the next generation
gives it. Now and then it says something under a generation that is over, which must not count.
"""

from collections.abc import Iterable
from random import Random

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Refused, check
from ottla.client.membership import REBALANCE_MS, SESSION_MS, Membership, share_by_ranges
from ottla.client.protocol import Request
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from ottla.protocol.messages import heartbeat, join_group, leave_group, sync_group
from ottla.simulation.clients.group_member import OUT, Fenced, GroupMember
from ottla.simulation.history.group_history import GroupHistory
from ottla.simulation.history.history import Violation
from ottla.simulation.plans.group_plan import GroupPlan

RANGE = "range"
PROTOCOL_VERSION = 2  # Members say what they own, and since which generation.
STALE_PROBABILITY = 0.2


class ClassicMember(GroupMember):
    protocol = RANGE
    _member_id = ""
    _generation = -1
    _is_told_to_join = False

    @property
    def epoch(self) -> int:
        return self._generation

    @property
    def member_id(self) -> str:
        return self._member_id

    async def join(self) -> None:
        before, stale = self._generation, dict(self.positions)
        self.prepare()
        joined = await self._join()
        sent = self.history.now_ns()
        shares = await self.shares(joined) if self._assigns(joined) else {}
        request = sync_group.Request(
            self.plan.name,
            joined.generation_id,
            self._member_id,
            self.instance,
            CONSUMER_PROTOCOL_TYPE,
            joined.protocol_name,
            [
                sync_group.SyncGroupRequestAssignment(member, encode_places(places))
                for member, places in shares.items()
            ],
        )
        answer = await self.ask(request, sync_group.Response)
        self._check(answer.error_code, "syncs")
        self._generation, self._is_told_to_join = joined.generation_id, False
        places = decode_places(answer.assignment) if answer.assignment else []
        await self.take(places, sent)
        stale = stale or dict.fromkeys(places, 0)
        is_over = self.plan.has_generations and 0 <= before < self._generation
        if stale and is_over and self.chance.random() < STALE_PROBABILITY:
            await self._commit_stale(before, stale)

    def prepare(self) -> None:
        """Before it joins again an eager member gives up everything."""
        self.revoke(list(self.standing.owned))

    async def take(self, places: list[TopicPartition], sent_ns: int) -> None:
        """Own what it was given."""
        if self.plan.has_generations:
            self.history.synced(self.standing, self._generation, places, sent_ns)
        else:
            self.standing.heard(sent_ns)
            self.history.given(self.standing, places, sent_ns)

    async def stay(self) -> None:
        if self._is_told_to_join:
            await self.join()
            return
        sent = self.history.now_ns()
        request = heartbeat.Request(
            self.plan.name, self._generation, self._member_id, self.instance
        )
        answer = await self.ask(request, heartbeat.Response)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.is_stubborn:
                self.standing.heard(sent, is_settled=False)
                return
            self._is_told_to_join = True
            await self.commit()  # The next owner shall go on here.
            await self.join()
            return
        self._check(answer.error_code, "sends a heartbeat")
        self._check_generation(self._generation, sent, "stays in")
        self.standing.heard(sent)

    async def leave(self) -> None:
        """A static member just goes: its place is kept for a while."""
        member_id = self._member_id
        self.abandon()
        if self.instance is None and member_id:
            members = [leave_group.MemberIdentity(member_id)]
            answer = await self.ask(
                leave_group.Request(self.plan.name, members=members), leave_group.Response
            )
            check(answer.error_code, about=f"{self.name} leaves")

    def took_commit(self, epoch: int, sent_ns: int) -> None:
        self._check_generation(epoch, sent_ns, "commits in")

    def refused_commit(self, code: int) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.join_again()
        self._end_if_fenced(code)

    def patience_ms(self, request: Request) -> int:
        patience_ms = super().patience_ms(request)
        waits = isinstance(request, join_group.Request | sync_group.Request)
        return patience_ms + 2 * self.plan.rebalance_ms if waits else patience_ms

    def _check_generation(self, generation: int, sent_ns: int, does: str) -> None:
        if self.plan.has_generations:
            self.history.check_generation(self.standing, generation, sent_ns, does)

    async def _commit_stale(self, generation: int, positions: dict[TopicPartition, int]) -> None:
        """As a request would that was on its way for long."""
        try:
            await self.commit_as(self._member_id, generation, positions)
        except Refused as refused:
            if refused.code in OUT and refused.code != ErrorCode.FENCED_INSTANCE_ID:
                return
            raise
        raise Violation(f"G3: {self.name} commits in generation {generation}, which is over")

    async def _join(self) -> join_group.Response:
        metadata = encode_versioned(self.subscription(), PROTOCOL_VERSION)
        request = join_group.Request(
            self.plan.name,
            self.plan.session_ms,
            self.plan.rebalance_ms,
            self._member_id,
            self.instance,
            CONSUMER_PROTOCOL_TYPE,
            [join_group.JoinGroupRequestProtocol(self.protocol, metadata)],
        )
        is_taking_over = not self._member_id and self.instance is not None
        if is_taking_over:
            self.history.takes_over(self.standing)
        answer = await self.ask(request, join_group.Response)
        if is_taking_over:
            self.history.takes_over(self.standing)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = self._member_id = answer.member_id
            answer = await self.ask(request, join_group.Response)
        self._check(answer.error_code, "joins")
        self._member_id = answer.member_id
        return answer

    def _assigns(self, joined: join_group.Response) -> bool:
        return joined.leader == self._member_id and not joined.skip_assignment

    def subscription(self) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(sorted(self.topics))

    async def shares(self, joined: join_group.Response) -> dict[str, list[TopicPartition]]:
        """It leads: what each member gets."""
        await self.cluster.refresh(self.topics)
        known = self.cluster.metadata.topics
        counts = {name: len(known[name].partitions) for name in self.topics if name in known}
        return share_by_ranges({m.member_id: self.topics for m in joined.members}, counts)

    def _check(self, code: int, does: str) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id, self._generation = "", -1
            self.abandon()
        elif code == ErrorCode.ILLEGAL_GENERATION:
            self.lose()
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join_again()
        self._end_if_fenced(code)
        check(code, about=f"{self.name} {does}")

    def join_again(self) -> None:
        self._is_told_to_join = True

    def lose(self) -> None:
        """Its generation is over: it has to join again."""
        self.join_again()

    def _end_if_fenced(self, code: int) -> None:
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self.abandon()
            raise Fenced


class ClientMember(GroupMember):
    """Ottla's own member of a classic group. It retries by itself, and waits for long."""

    def __init__(
        self,
        plan: GroupPlan,
        name: str,
        instance: str | None,
        topics: Iterable[str],
        *,
        cluster: Cluster,
        history: GroupHistory,
        chance: Random,
    ) -> None:
        super().__init__(
            plan, name, instance, topics, cluster=cluster, history=history, chance=chance
        )
        self.standing.session_ms, self.standing.rebalance_ms = SESSION_MS, REBALANCE_MS
        self._membership = Membership(cluster, plan.name, self.topics)

    @property
    def epoch(self) -> int:
        return self._membership.generation

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    async def join(self) -> None:
        self.revoke(list(self.standing.owned))
        sent = self.history.now_ns()
        await self._membership.join()
        places = self._membership.partitions
        self.history.synced(self.standing, self._membership.generation, places, sent)

    async def stay(self) -> None:
        sent, generation = self.history.now_ns(), self._membership.generation
        if await self._membership.heartbeat():
            self.history.check_generation(self.standing, generation, sent, "stays in")
            self.standing.heard(sent)
        else:
            await self.commit()
            await self.join()

    async def leave(self) -> None:
        self.abandon()
        if not await self._membership.leave():
            raise ClientError(f"{self.name} could not leave")


def encode_places(places: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, AssignmentTopicPartition] = {}
    for topic, partition in places:
        topics.setdefault(topic, AssignmentTopicPartition(topic)).partitions.append(partition)
    return encode_versioned(ConsumerProtocolAssignment(list(topics.values())), PROTOCOL_VERSION)


def decode_places(data: bytes) -> list[TopicPartition]:
    assignment, _ = decode_versioned(ConsumerProtocolAssignment, data)
    return [
        TopicPartition(item.topic, index)
        for item in assignment.assigned_partitions
        for index in item.partitions
    ]
