"""The groups of a run: members that come and go, and outsiders who look at their offsets.

Each place in a group is taken by one member after another: it stalls, crashes, leaves, comes back,
under its instance id or as someone new. In the end all are calm, and the groups must settle.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings
from ottla.client.errors import ClientError, Refused
from ottla.client.groups import NAMES_VERSION_MAX, Groups
from ottla.client.offsets import LATEST, find_offsets
from ottla.client.producer import Producer
from ottla.client.protocol import Request
from ottla.model.errors import ErrorCode
from ottla.model.types import Offset, TopicPartition
from ottla.protocol.messages import delete_groups, offset_commit, offset_delete
from ottla.simulation.clients.classic_member import ClassicMember, ClientMember
from ottla.simulation.clients.consumer_member import ConsumerMember
from ottla.simulation.clients.cooperative_member import CooperativeMember
from ottla.simulation.clients.group_member import Fenced, GroupMember, commit_request, settle
from ottla.simulation.clients.workload import CLIENT, Connect, Unfailing, persist
from ottla.simulation.history.group_history import DELETION, NO_OFFSET, GroupHistory, Write
from ottla.simulation.plans.group_plan import GroupPlan, Kind
from ottla.simulation.plans.plan import Plan

Answer = TypeVar("Answer")

MEMBERS: dict[Kind, list[type[GroupMember]]] = {
    Kind.CLASSIC: [ClassicMember],
    Kind.CONSUMER: [ConsumerMember],
    Kind.CLIENT: [ClientMember],
    Kind.MIXED: [ClassicMember, ConsumerMember],
}
TOPICS = ("stream-0", "stream-1")
PARTITIONS = 3
RECORDS_PER_SECOND = 10.0
SETTLE_POLL_SECONDS = 0.1
OUTSIDER_SECONDS = 0.4
ACCIDENTS = ("stall", "crash", "crash", "leave", "leave", "resist", "succeed")
# A group that has members, or is not there.
NOT_NOW = (
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
)


class GroupWorkload:
    def __init__(self, plan: Plan, history: GroupHistory, connect: Connect) -> None:
        self.plan = plan
        self.history = history
        self.is_over = False  # No more accidents: all groups come to rest,
        self.is_settled = False  # and have.
        self.members: dict[str, dict[int, GroupMember]] = {g.name: {} for g in plan.groups}
        self._connect = connect
        self._lives = 0
        self._strays: list[asyncio.Task[None]] = []

    @property
    def places(self) -> list[TopicPartition]:
        return [TopicPartition(name, index) for name in TOPICS for index in range(PARTITIONS)]

    async def create_topics(self) -> None:
        admin = Admin(self._connect("group-admin", CLIENT))
        for name in TOPICS:
            await persist(partial(_create, admin, name))

    def begin(self, group: asyncio.TaskGroup) -> None:
        group.create_task(self._produce())
        for one in self.plan.groups:
            for number in range(one.members):
                group.create_task(self._take_part(one, number))
            group.create_task(self._look_on(one))
            group.create_task(self._meddle(one))

    async def wait_settled(self) -> None:
        """Everything is read and committed, by members who agree about who owns what."""
        cluster = self._connect("group-auditor", CLIENT)
        self.is_settled = not self.plan.groups
        while not self.is_settled:
            await asyncio.sleep(SETTLE_POLL_SECONDS)
            find = partial(find_offsets, cluster, dict.fromkeys(self.places, LATEST))
            ends = {place: found.offset for place, found in (await persist(find)).items()}
            self.is_settled = all(self.is_at_rest(one, ends) for one in self.plan.groups)
        cluster.close()

    def is_at_rest(self, group: GroupPlan, ends: dict[TopicPartition, Offset]) -> bool:
        members = list(self.members[group.name].values())
        owned = [place for member in members for place in member.standing.owned]
        read = {place: at for member in members for place, at in member.committed.items()}
        return (
            len(members) == group.members
            and all(member.standing.is_in for member in members)
            and len({member.epoch for member in members}) == 1
            and sorted(owned) == self.places
            and read == ends
        )

    def unrest(self) -> str:
        """What keeps groups from coming to rest, if they do not."""
        if self.is_settled:
            return ""
        members = [one for members in self.members.values() for one in members.values()]
        lines = [
            f"{one.name} is {'in' if one.standing.is_in else 'out'} at {one.epoch}, owns "
            f"{len(one.standing.owned)}, committed {[*one.committed.values()]}"
            for one in members
        ]
        return f"G4: groups do not come to rest: {'; '.join(lines)}; "

    async def audit(self) -> None:
        cluster = self._connect("group-auditor", CLIENT)
        for group in self.plan.groups:
            await persist(partial(self._look, cluster, group))
        cluster.close()

    async def _produce(self) -> None:
        chance = Random(f"group producer/{self.plan.seed}")
        settings = ProducerSettings(acks=-1, delivery_ms_max=60_000, request_ms_max=2_000)
        async with Unfailing(Producer(self._connect("group-producer", CLIENT), settings)) as it:
            while not self.is_over:
                await asyncio.sleep(chance.expovariate(RECORDS_PER_SECOND))
                topic, partition = chance.choice(self.places)
                with suppress(ClientError):  # Others see to it that none is lost.
                    await it.send(topic, b"x", partition=partition)

    # Members.

    async def _take_part(self, group: GroupPlan, number: int) -> None:
        chance = Random(f"{group.name}/{number}/{self.plan.seed}")
        await asyncio.sleep(chance.uniform(0, 1))
        while True:
            member = self.new_member(group, number, chance)
            self.members[group.name][number] = member
            living = asyncio.get_running_loop().create_task(member.live())
            is_succeeded = False
            try:
                is_succeeded = await self._accompany(member, living, chance)
            finally:
                if not is_succeeded:
                    await stop(living)
                    member.end()
            if self.is_settled:
                break
            pause = 0.0 if self.is_over else chance.uniform(0.05, 1.5) * group.session_ms / 1000
            await asyncio.sleep(pause)
        for stray in self._strays:
            await stop(stray)

    def new_member(self, group: GroupPlan, number: int, chance: Random) -> GroupMember:
        self._lives += 1
        name = f"{group.name}-{number}.{self._lives}"
        kind = chance.choice(MEMBERS[group.kind])
        if kind is ClassicMember and group.is_cooperative:
            kind = CooperativeMember
        return kind(
            group,
            name,
            f"instance-{number}" if number < group.static else None,
            TOPICS,
            cluster=self._connect(name, replace(CLIENT, client_id=name)),
            history=self.history,
            chance=chance,
        )

    async def _accompany(
        self, member: GroupMember, living: "asyncio.Task[None]", chance: Random
    ) -> bool:
        """See a member through its life; True if another one takes over while it goes on."""
        group = member.plan
        while not self.is_settled:
            calm = chance.expovariate(1 / group.calm_seconds)
            await asyncio.wait([living], timeout=min(calm, 0.2) if self.is_over else calm)
            if living.done():
                with suppress(Fenced):
                    living.result()
                return False
            if self.is_over:
                member.is_stubborn = False
                continue
            accident = chance.choice(ACCIDENTS)
            if group.kind is Kind.CLIENT and accident != "leave":
                continue  # Its session is so long that a run would end before.
            if accident == "stall":
                member.stall_seconds = chance.uniform(0.2, 2.5) * group.session_ms / 1000
            elif accident == "resist":
                member.is_stubborn = True
            elif accident == "succeed":
                if member.instance is not None and group.kind is Kind.CLASSIC:
                    self._strays.append(self._let_go(member, living))
                    return True
            else:
                await stop(living)
                if accident == "leave":
                    await leave(member)
                return False
        return False

    def _let_go(self, member: GroupMember, living: "asyncio.Task[None]") -> "asyncio.Task[None]":
        """It goes on until it hears that another one bears its instance id."""

        async def go_on() -> None:
            try:
                with suppress(Fenced):
                    await living
            finally:
                await stop(living)
                member.end()

        return asyncio.get_running_loop().create_task(go_on())

    # Outsiders.

    async def _look_on(self, group: GroupPlan) -> None:
        chance = Random(f"outsider/{group.name}/{self.plan.seed}")
        cluster = self._connect(f"{group.name}-outsider", CLIENT)
        while not self.is_settled:
            await asyncio.sleep(chance.expovariate(1 / OUTSIDER_SECONDS))
            with suppress(ClientError):
                await self._look(cluster, group)
        cluster.close()

    async def _look(self, cluster: Cluster, group: GroupPlan) -> None:
        began = self.history.now_ns()
        offsets = await Groups(cluster).offsets(group.name)
        for place in self.places:
            found = offsets.get(place)
            offset, token = (found.offset, found.metadata) if found else (NO_OFFSET, "")
            self.history.fetched(group.name, place, offset, token, began)

    async def _meddle(self, group: GroupPlan) -> None:
        """Outsiders reset or delete offsets, which a group lets them only when it is empty."""
        chance = Random(f"meddler/{group.name}/{self.plan.seed}")
        cluster = self._connect(f"{group.name}-meddler", CLIENT)
        while not self.is_over:
            await asyncio.sleep(chance.expovariate(1 / (3 * OUTSIDER_SECONDS)))
            deeds = (self._reset, self._reset, self._delete_offset, self._delete_group)
            with suppress(ClientError):
                await chance.choice(deeds)(cluster, group.name, chance.choice(self.places))
        cluster.close()

    async def _reset(self, cluster: Cluster, group: str, place: TopicPartition) -> None:
        token = self.history.new_token()
        write = self.history.writing(group, place, 0, token)
        with self._ending(write):
            request = commit_request(group, {place: 0}, token)
            answer = await _ask(cluster, group, request, offset_commit.Response)
            code = settle(answer, {place: write}, self.history, group)
            if code == ErrorCode.NONE:
                self.history.done_by_outsider(group, write)

    async def _delete_offset(self, cluster: Cluster, group: str, place: TopicPartition) -> None:
        write = self.history.writing(group, place, NO_OFFSET, DELETION)
        topic = offset_delete.OffsetDeleteRequestTopic(
            place.topic, [offset_delete.OffsetDeleteRequestPartition(place.partition)]
        )
        with self._ending(write):
            request = offset_delete.Request(group, [topic])
            answer = await _ask(cluster, group, request, offset_delete.Response)
            code = answer.error_code or answer.topics[0].partitions[0].error_code
            self._deleted(group, {place: write}, code)

    async def _delete_group(self, cluster: Cluster, group: str, _: TopicPartition) -> None:
        writes = {
            place: self.history.writing(group, place, NO_OFFSET, DELETION) for place in self.places
        }
        self.history.forget_group(group)
        with self._ending(*writes.values()):
            request = delete_groups.Request([group])
            answer = await _ask(cluster, group, request, delete_groups.Response)
            self._deleted(group, writes, answer.results[0].error_code)
        self.history.forget_group(group)

    def _deleted(self, group: str, writes: dict[TopicPartition, Write], code: int) -> None:
        for place, write in writes.items():
            if code == ErrorCode.NONE:
                self.history.written(group, place, write)
                self.history.done_by_outsider(group, write)
            elif code in NOT_NOW:
                self.history.refused(write)

    @contextmanager
    def _ending(self, *writes: Write) -> Iterator[None]:
        """What has no answer in the end may still be done for a moment."""
        try:
            yield
        finally:
            for write in writes:
                self.history.given_up(write)


async def _ask(cluster: Cluster, group: str, request: Request, answer: type[Answer]) -> Answer:
    node_id = await Groups(cluster).coordinator(group)
    connection = await cluster.broker(node_id)
    version_max = NAMES_VERSION_MAX if isinstance(request, offset_commit.Request) else None
    return await connection.ask(
        request, answer, timeout_ms=CLIENT.request_ms_max, version_max=version_max
    )


async def _create(admin: Admin, topic: str) -> None:
    try:
        await admin.create_topic(topic, partitions=PARTITIONS)
    except Refused as refused:  # An attempt before this one may have succeeded unheard.
        if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        with suppress(Fenced):
            task.result()


async def leave(member: GroupMember) -> None:
    """Leave, and then say something that only a member may."""
    epoch, member_id, positions = member.epoch, member.member_id, dict(member.positions)
    began = member.history.now_ns()
    with suppress(ClientError):
        await member.leave()
        is_out = not member.history.may_be_over(began)
        if positions and member.instance is None and is_out:
            await member.haunt(member_id, epoch, positions)
