"""A member of a group in a run: it reads what it owns, commits, and has its accidents.

It does one thing after the other, so that a broker that is slow makes it slow; a stall is a long
sleep, after which it goes on as if nothing had been. How it joins and stays in its group is what
`classic_member.py` and `consumer_member.py` are for.
"""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Refused, check
from ottla.client.groups import NAMES_VERSION_MAX, Groups
from ottla.client.protocol import Request
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.protocol.messages import offset_commit, offset_fetch
from ottla.simulation.history.group_history import NO_OFFSET, GroupHistory, Standing, Write
from ottla.simulation.history.history import Violation
from ottla.simulation.plans.group_plan import GroupPlan
from ottla.simulation.world.loop import MILLISECOND

Answer = TypeVar("Answer")

RETRY_SECONDS: Final = 0.1
READ: Final = ReaderSettings(wait_ms=100, fetch_bytes_max=64 << 10, partition_bytes_max=16 << 10)
# The coordinator is elsewhere, not ready, or lost what it was about to write.
COORDINATOR_GONE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
# Answers that a member gets because it is none, or its group has moved on.
OUT: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


class Fenced(Exception):
    """Another one took this member's place: it ends."""


class GroupMember:
    """What members of both protocols share. `join` and `stay` are theirs."""

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
        self.plan = plan
        self.instance = instance
        self.topics = list(topics)
        self.cluster = cluster
        self.history = history
        self.chance = chance
        self.standing = Standing(
            name, plan.name, instance, plan.session_ms, plan.rebalance_ms, history.now_ns
        )
        self.positions: dict[TopicPartition, Offset] = {}  # Of what it owns and knows where.
        self.committed: dict[TopicPartition, Offset] = {}  # By this member, of those.
        self.stall_seconds = 0.0  # To sleep so long before its next turn.
        self.is_stubborn = False  # It gives up nothing, until it is thrown out.
        self._coordinator: NodeId | None = None
        self._reader: Reader | None = None
        self._heartbeat_ns = self._commit_ns = 0
        history.joins(self.standing)

    @property
    def name(self) -> str:
        return self.standing.name

    @property
    def epoch(self) -> int:
        """The generation or epoch in which it is, -1 if in none."""
        raise NotImplementedError

    @property
    def member_id(self) -> str:
        raise NotImplementedError

    async def join(self) -> None:
        """One attempt to become a member."""
        raise NotImplementedError

    async def stay(self) -> None:
        """One heartbeat."""
        raise NotImplementedError

    async def leave(self) -> None:
        raise NotImplementedError

    async def live(self) -> None:
        """Be a member until something happens; the workload decides what comes after."""
        while True:
            try:
                await self.turn()
            except Refused as refused:
                if refused.code not in OUT | COORDINATOR_GONE:
                    raise Violation(f"{self.name}: {refused!r}") from refused
                if refused.code == ErrorCode.NOT_COORDINATOR:
                    self._coordinator = None
                await self.pause()
            except ClientError as error:
                if not error.is_retriable:
                    raise Violation(f"{self.name}: {error!r}") from error
                await self.pause()

    async def turn(self) -> None:
        if self.stall_seconds:
            seconds, self.stall_seconds = self.stall_seconds, 0.0
            await asyncio.sleep(seconds)
            await self.commit()  # As if nothing had been.
        now = self.history.now_ns()
        if not self.standing.is_in:
            await self.join()
        elif now >= self._heartbeat_ns:
            self._heartbeat_ns = now + self.plan.heartbeat_ms * MILLISECOND
            await self.stay()
        await self.find_positions()
        await self._read()
        if now >= self._commit_ns:
            self._commit_ns = now + self.plan.commit_ms * MILLISECOND
            await self.commit()

    def hurry(self) -> None:
        """The next heartbeat is due now."""
        self._heartbeat_ns = 0

    def end(self) -> None:
        """Gone, in the middle of whatever it did: the kernel closes its connections."""
        self.history.ends(self.standing)
        self.cluster.close()

    # Partitions.

    def revoke(self, places: Iterable[TopicPartition]) -> None:
        for place in places:
            self.standing.owned.discard(place)
            self.positions.pop(place, None)
            self.committed.pop(place, None)
        self._read_anew()

    async def give_up(self, lost: set[TopicPartition]) -> None:
        """Commit what was read of them, so that the next owner goes on there, and let go."""
        last = {place: at for place, at in self.positions.items() if place in lost}
        try:
            if last and self.epoch >= 0:
                await self.commit_as(self.member_id, self.epoch, last)
        finally:
            self.revoke(lost)

    def abandon(self) -> None:
        """The group does not know this member, or not as it was."""
        self.standing.is_out()
        self.is_stubborn = False
        self.positions.clear()
        self.committed.clear()
        self._read_anew()

    async def find_positions(self) -> None:
        """Ask where the group stopped, in what was given to this member last."""
        unknown = sorted(self.standing.owned - self.positions.keys())
        if not unknown:
            return
        began = self.history.now_ns()
        found = await self.fetch_offsets(unknown)
        for place in unknown:
            offset, token = found.get(place, (NO_OFFSET, ""))
            self.history.fetched(self.plan.name, place, offset, token, began)
            if place in self.standing.owned:
                self.positions[place] = max(offset, 0)
        self._read_anew()

    async def _read(self) -> None:
        if self._reader is None and self.positions:
            self._reader = Reader(self.cluster, self.positions, READ)
        if self._reader is None:
            await asyncio.sleep(0.05)
            return
        for message in await self._reader.poll(wait_ms=50):
            place, offset = message.topic_partition, message.offset
            self.history.handled(self.plan.name, place, offset, offset + 1)
            self.positions[place] = offset + 1

    def _read_anew(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    # Offsets.

    async def commit(self) -> None:
        """Say how far it has read, wherever that has changed."""
        news = {p: at for p, at in self.positions.items() if self.committed.get(p) != at}
        if news and self.epoch >= 0:
            await self.commit_as(self.member_id, self.epoch, news)
            self.committed.update((p, at) for p, at in news.items() if p in self.positions)

    async def commit_as(
        self, member_id: str, epoch: int, positions: dict[TopicPartition, Offset]
    ) -> None:
        group, history = self.plan.name, self.history
        token = history.new_token()
        writes = {
            place: history.writing(group, place, offset, token)
            for place, offset in positions.items()
        }
        request = commit_request(group, positions, token)
        request.member_id, request.group_instance_id = member_id, self.instance
        request.generation_id_or_member_epoch = epoch
        sent = history.now_ns()
        try:
            answer = await self.ask(request, offset_commit.Response, NAMES_VERSION_MAX)
            code = settle(answer, writes, history, group)
        finally:
            for write in writes.values():
                history.given_up(write)
        if code == ErrorCode.NONE:
            self.took_commit(epoch, sent)
            for place, write in writes.items():
                history.committed_by(self.standing, place, write)
        elif code in OUT:
            self.refused_commit(code)
        check(code, about=f"{self.name} commits")

    async def haunt(
        self, member_id: str, epoch: int, positions: dict[TopicPartition, Offset]
    ) -> None:
        """It has left, and commits all the same."""
        await self.commit_as(member_id, epoch, positions)
        raise Violation(f"G3: {self.name} has left, and its commit in {epoch} was taken")

    def took_commit(self, epoch: int, sent_ns: int) -> None:
        pass

    def refused_commit(self, code: int) -> None:
        pass

    async def fetch_offsets(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[Offset, str]]:
        wanted = offset_fetch.OffsetFetchRequestGroup(self.plan.name, *self.fetch_as())
        wanted.topics = [
            offset_fetch.OffsetFetchRequestTopics(place.topic, partition_indexes=[place.partition])
            for place in places
        ]
        request = offset_fetch.Request(groups=[wanted])
        answer = await self.ask(request, offset_fetch.Response, NAMES_VERSION_MAX)
        return fetched_offsets(answer)

    def fetch_as(self) -> tuple[str | None, int]:
        return None, -1

    # Requests.

    async def ask(
        self, request: Request, answer: type[Answer], version_max: int | None = None
    ) -> Answer:
        """One attempt, at the coordinator as far as it is known."""
        if self._coordinator is None:
            self._coordinator = await Groups(self.cluster).coordinator(self.plan.name)
        try:
            connection = await self.cluster.broker(self._coordinator)
            return await connection.ask(
                request, answer, timeout_ms=self.patience_ms(request), version_max=version_max
            )
        except ClientError:
            self._coordinator = None
            raise

    def patience_ms(self, _: Request) -> int:
        return self.cluster.settings.request_ms_max

    async def pause(self) -> None:
        await asyncio.sleep(self.chance.uniform(0.5, 1.5) * RETRY_SECONDS)


def commit_request(
    group: str, positions: dict[TopicPartition, Offset], token: str
) -> offset_commit.Request:
    """Each commit bears a token, so that whoever fetches it knows which one it was."""
    topics: dict[str, offset_commit.OffsetCommitRequestTopic] = {}
    for (name, partition), offset in positions.items():
        topic = topics.setdefault(name, offset_commit.OffsetCommitRequestTopic(name))
        topic.partitions.append(
            offset_commit.OffsetCommitRequestPartition(partition, offset, committed_metadata=token)
        )
    return offset_commit.Request(group, topics=list(topics.values()))


def settle(
    answer: offset_commit.Response,
    writes: dict[TopicPartition, Write],
    history: GroupHistory,
    group: str,
) -> int:
    """Note what became of each write; the first error code, if there is one."""
    first = 0
    for topic in answer.topics:
        for part in topic.partitions:
            place = TopicPartition(topic.name, part.partition_index)
            if part.error_code == ErrorCode.NONE:
                history.written(group, place, writes[place])
            elif part.error_code in OUT:
                history.refused(writes[place])
            first = first or part.error_code
    return first


def fetched_offsets(answer: offset_fetch.Response) -> dict[TopicPartition, tuple[Offset, str]]:
    group = answer.groups[0]
    check(group.error_code, about=f"the offsets of {group.group_id}")
    found = {}
    for topic in group.topics:
        for part in topic.partitions:
            check(part.error_code, about=f"the offset of {topic.name}-{part.partition_index}")
            place = TopicPartition(topic.name, part.partition_index)
            found[place] = part.committed_offset, part.metadata or ""
    return found
