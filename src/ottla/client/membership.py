"""A member of a classic group: joins, takes its partitions, stays alive, leaves.

    member = Membership(cluster, "billing", ["orders"])
    await member.join()
    ...  # Read member.partitions, and call `heartbeat` every few seconds.
    if not await member.heartbeat():
        await member.join()  # The group changes: commit first, for others may get the partitions.
    await member.leave()

Nothing runs in the background. It shares partitions out by ranges, as most clients can.
"""

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import ClientError, Refused, check
from ottla.client.groups import Groups
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, NodeId, Offset, TopicPartition
from ottla.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from ottla.protocol.messages import heartbeat, join_group, leave_group, sync_group

RANGE = "range"
SESSION_MS, REBALANCE_MS, HEARTBEAT_MS = 45_000, 60_000, 3_000
MEMBERS_SINCE = 3  # LeaveGroup takes a list of members.
PROTOCOL_VERSION = 1
JOIN_AGAIN = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.MEMBER_ID_REQUIRED,
)


class Membership:
    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str]) -> None:
        self.group = group
        self.topics = list(topics)
        self.member_id = ""
        self.generation = -1
        self.partitions: tuple[TopicPartition, ...] = ()
        self._cluster = cluster
        self._groups = Groups(cluster)

    async def join(self) -> None:
        """Become a member, or stay one after the group has changed."""
        while True:
            try:
                joined = await self._groups.at_coordinator(self.group, self._join)
                self.member_id, self.generation = joined.member_id, joined.generation_id
                shares = await self._shares(joined) if joined.leader == self.member_id else {}
                self.partitions = await self._sync(joined.protocol_name or RANGE, shares)
            except Refused as failure:
                if not self._joins_again(failure):
                    raise
            else:
                return

    async def heartbeat(self) -> bool:
        """Say that we are alive; False if we must join again."""
        request = heartbeat.Request(self.group, self.generation, self.member_id)

        async def attempt(connection: Connection, _node_id: NodeId) -> None:
            answer = await connection.ask(
                request, heartbeat.Response, timeout_ms=self._cluster.settings.request_ms_max
            )
            check(answer.error_code, about=f"group {self.group!r}")

        return await self._is_still_member(self._groups.at_coordinator(self.group, attempt))

    async def commit(self, offsets: Mapping[TopicPartition, Offset]) -> bool:
        """Commit as this member; False if the group did not take it, for it has changed."""
        return await self._is_still_member(
            self._groups.commit(
                self.group, offsets, member_id=self.member_id, generation=self.generation
            )
        )

    async def leave(self) -> bool:
        """Let others have the partitions at once; False if the coordinator has not confirmed it."""
        if not self.member_id:
            return False

        async def attempt(connection: Connection, _node_id: NodeId) -> int:
            request = leave_group.Request(self.group)
            if connection.version_for(leave_group.Request) >= MEMBERS_SINCE:
                request.members = [leave_group.MemberIdentity(self.member_id)]
            else:
                request.member_id = self.member_id
            answer = await connection.ask(
                request, leave_group.Response, timeout_ms=self._cluster.settings.request_ms_max
            )
            return answer.error_code

        code: int | None = None
        with suppress(ClientError):
            code = await self._groups.at_coordinator(self.group, attempt)
        self.member_id, self.generation, self.partitions = "", -1, ()
        return code == ErrorCode.NONE

    async def _is_still_member(self, asking: Awaitable[None]) -> bool:
        try:
            await asking
        except Refused as failure:
            if not self._joins_again(failure):
                raise
            return False
        return True

    def _joins_again(self, failure: Refused) -> bool:
        if failure.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""  # We were silent for too long, and given up.
        return failure.code in JOIN_AGAIN

    async def _join(self, connection: Connection, _node_id: NodeId) -> join_group.Response:
        subscription = ConsumerProtocolSubscription(sorted(self.topics))
        protocol = join_group.JoinGroupRequestProtocol(
            RANGE, encode_versioned(subscription, PROTOCOL_VERSION)
        )
        answer = await connection.ask(
            join_group.Request(
                self.group,
                SESSION_MS,
                REBALANCE_MS,
                self.member_id,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocols=[protocol],
            ),
            join_group.Response,
            timeout_ms=patience_ms(self._cluster),
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        check(answer.error_code, about=f"group {self.group!r}")
        return answer

    async def _sync(
        self, protocol: str, shares: Mapping[str, Sequence[TopicPartition]]
    ) -> tuple[TopicPartition, ...]:
        request = sync_group.Request(
            self.group,
            self.generation,
            self.member_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=protocol,
            assignments=[
                sync_group.SyncGroupRequestAssignment(member, _encode(places))
                for member, places in shares.items()
            ],
        )

        async def attempt(connection: Connection, _node_id: NodeId) -> bytes:
            answer = await connection.ask(
                request, sync_group.Response, timeout_ms=patience_ms(self._cluster)
            )
            check(answer.error_code, about=f"group {self.group!r}")
            return answer.assignment

        data = await self._groups.at_coordinator(self.group, attempt)
        return _decode(data) if data else ()

    async def _shares(self, joined: join_group.Response) -> dict[str, list[TopicPartition]]:
        """We lead: what each member gets."""
        wishes = {
            member.member_id: decode_versioned(ConsumerProtocolSubscription, member.metadata)[0]
            for member in joined.members
        }
        names = sorted({topic for wish in wishes.values() for topic in wish.topics})
        await self._cluster.refresh(names)
        known = self._cluster.metadata.topics
        counts = {name: len(known[name].partitions) for name in names if name in known}
        return share_by_ranges({who: wish.topics for who, wish in wishes.items()}, counts)


def patience_ms(cluster: Cluster) -> Millis:
    """A join is answered when all members have come, or the time for that is over."""
    return REBALANCE_MS + cluster.settings.request_ms_max


def share_by_ranges(
    wishes: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Of each topic a run of partitions for each member that wants it; the first get one more."""
    shares: dict[str, list[TopicPartition]] = {member: [] for member in wishes}
    for topic, count in sorted(counts.items()):
        members = sorted(member for member, topics in wishes.items() if topic in topics)
        first = 0
        for number, member in enumerate(members):
            size = count // len(members) + (number < count % len(members))
            shares[member] += [TopicPartition(topic, first + index) for index in range(size)]
            first += size
    return shares


def _encode(places: Sequence[TopicPartition]) -> bytes:
    topics: dict[str, AssignmentTopicPartition] = {}
    for topic, partition in places:
        topics.setdefault(topic, AssignmentTopicPartition(topic)).partitions.append(partition)
    return encode_versioned(ConsumerProtocolAssignment(list(topics.values())), PROTOCOL_VERSION)


def _decode(data: bytes) -> tuple[TopicPartition, ...]:
    assignment, _ = decode_versioned(ConsumerProtocolAssignment, data)
    return tuple(
        TopicPartition(item.topic, index)
        for item in assignment.assigned_partitions
        for index in item.partitions
    )
