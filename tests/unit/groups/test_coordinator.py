"""A whole coordinator under random members: one owner per generation, and rebalances that end."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.groups.classic.group import ClassicState
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.consumer_group_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupRecord,
    LegacyOffsetCommitKey,
    OffsetCommitValue,
)
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tests.unit.groups.chaos import Chaos
from tests.unit.groups.consuming import Consumer, ConsumerWorld
from tests.unit.groups.driving import (
    GROUP,
    World,
    beating,
    committed,
    committing,
    joining,
    leaving,
    new_id,
    stable,
    subscription,
    syncing,
)

# ruff: noqa: ANN401  Requests are of many classes.


def test_offsets_of_the_oldest_kafka_are_loaded() -> None:
    world = World()
    value = OffsetCommitValue(9, metadata="", commit_timestamp=world.clock.wall())
    world.log.append(GroupRecord(LegacyOffsetCommitKey(GROUP, "t", 0), value))
    world.reload()
    assert committed(world) == 9


def test_a_deleted_group_is_gone_after_loading() -> None:
    world = World()
    world.log.append(GroupRecord(GroupMetadataKey(GROUP), None))
    world.log.append(GroupRecord(ConsumerGroupMetadataKey("new"), ConsumerGroupMetadataValue(1)))
    world.reload()
    assert GROUP not in world.machine.groups


class Members(RuleBasedStateMachine):
    """Clients that do what clients do, in any order, with a coordinator that is lost at times."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.joins: dict[str, list] = {}
        self.syncs: dict[str, tuple[int, list]] = {}
        self.owners: dict[int, set[str]] = {}  # Who was told to own all, by generation.

    def members(self) -> list[str]:
        return sorted(set(self.joins) | set(self.syncs))

    @rule()
    def come(self) -> None:
        if len(self.members()) < 4:
            member = new_id(self.world)
            self.joins[member] = self.world.ask(joining(member))

    @precondition(lambda self: self.members())
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members()))
        self.world.ask(leaving(member))
        self.joins.pop(member, None)
        self.syncs.pop(member, None)

    @precondition(lambda self: self.members())
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members()))
        self.joins.pop(member, None)
        self.syncs.pop(member, None)

    @rule()
    def go_on(self) -> None:
        """Everyone acts on what it was told."""
        for member, reply in list(self.joins.items()):
            if reply:
                del self.joins[member]
                self.joined(member, reply[0])
        for member, (generation, reply) in list(self.syncs.items()):
            if reply and reply[0] is not None:
                self.synced(member, generation, reply)
            elif reply:
                code = self.world.code(beating(generation, member))
                if code:
                    self.rejoin(member)

    def joined(self, member: str, reply: object) -> None:
        if isinstance(reply, Refusal) and reply.code == ErrorCode.NOT_COORDINATOR:
            self.rejoin(member)
            return
        if isinstance(reply, Refusal) or reply.error_code:  # type: ignore[attr-defined]
            return
        generation, parts = reply.generation_id, {}  # type: ignore[attr-defined]
        if reply.leader == member:  # type: ignore[attr-defined]
            parts = {member: b"all"}
        self.syncs[member] = (generation, self.world.ask(syncing(generation, member, parts)))

    def synced(self, member: str, generation: int, reply: list) -> None:
        if isinstance(reply[0], Refusal) or reply[0].error_code:
            self.rejoin(member)
            return
        if reply[0].assignment:
            self.owners.setdefault(generation, set()).add(member)
        self.syncs[member] = (generation, [None])

    def rejoin(self, member: str) -> None:
        self.syncs.pop(member, None)
        self.joins[member] = self.world.ask(joining(member))

    @rule(seconds=st.integers(1, 40))
    def pass_time(self, seconds: int) -> None:
        self.world.pass_time(seconds * 1000)

    @rule()
    def lose_the_coordinator(self) -> None:
        self.world.reload()

    @invariant()
    def a_generation_has_one_owner(self) -> None:
        for generation, owners in self.owners.items():
            assert len(owners) == 1, f"generation {generation} belongs to {owners}"

    @invariant()
    def the_group_holds_together(self) -> None:
        group = self.world.machine.groups.get(GROUP)
        if group is None:
            return
        assert group.is_empty == (not group.members) or group.pending
        assert group.leader in group.members or not group.members
        waiting = [m for m in group.members.values() if m.joining is not None]
        assert not waiting or group.state is ClassicState.PREPARING_REBALANCE

    def teardown(self) -> None:
        """Nobody is heard of any more: every wait ends, and the group is empty."""
        self.world.pass_time(10 * 60 * 1000)
        group = self.world.machine.groups.get(GROUP)
        assert group is None or group.is_empty
        assert all(reply for reply in self.joins.values())
        assert all(reply for _, reply in self.syncs.values())


TestMembers = Members.TestCase
TestMembers.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize("seed", range(40))
def test_no_sequence_of_requests_breaks_it_and_reloading_finds_the_same(seed: int) -> None:
    world, chaos = ConsumerWorld(t=4, u=2), Chaos(seed)
    for _ in range(300):
        request = chaos.request()
        versions = getattr(type(request), "VERSIONS", range(10))
        for reply in world.ask(request, chaos.random.choice(versions)):
            chaos.learn(reply)
        if chaos.random.random() < 0.1:
            world.pass_time(chaos.random.choice([100, 6_000, 50_000]))
        if chaos.random.random() < 0.03:
            world.reload()
    offsets = {group: dict(kept) for group, kept in world.machine.offsets.items()}
    consumers = world.machine.consumers.by_id
    world.reload()
    assert world.machine.offsets == offsets
    for group_id, group in world.machine.consumers.by_id.items():
        assert (group.epoch, group.target_epoch) == (
            consumers[group_id].epoch,
            consumers[group_id].target_epoch,
        )
        assert (group.members, group.owners) == (
            consumers[group_id].members,
            consumers[group_id].owners,
        )
    assert set(world.machine.consumers.by_id) == set(consumers)
    assert not set(consumers) & set(world.machine.groups), "a group is of one kind"


NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
LONGEST = "x" * 32_767  # No longer string comes from the wire.


def test_while_the_log_takes_nothing_a_stable_group_stays_as_it_is() -> None:
    world = World()
    generation, (leader, follower) = stable(world, 2)
    assert world.reply(committing(5, generation, leader)).topics[0].partitions[0].error_code == 0
    world.refusal = NOT_AVAILABLE
    assert world.code(beating(generation, follower)) == 0
    assert committed(world) == 5
    assert world.reply(syncing(generation, follower)).assignment == follower.encode()
    assert world.reply(committing(6, generation, leader)).code == NOT_AVAILABLE
    assert world.code(joining()) == NOT_AVAILABLE
    assert world.code(joining(leader, protocols={"range": subscription("u")})) == NOT_AVAILABLE
    assert world.code(leaving(follower)) == NOT_AVAILABLE
    assert world.code(beating(generation, leader)) == 0, "nothing of all that has begun"
    world.refusal = None
    assert world.code(beating(generation, follower)) == 0
    assert committed(world) == 5


@pytest.mark.parametrize("code", [NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_assignment_that_the_log_refuses_fails_all_who_wait_and_the_group_rebalances(
    code: ErrorCode,
) -> None:
    world = World()
    generation, (leader, follower) = stable(world, 2)
    world.ask(joining(follower, protocols={"range": subscription("u")}))
    generation = world.reply(joining(leader)).generation_id
    waiting = world.ask(syncing(generation, follower))
    parts = {leader: b"x" * 100}
    if code is NOT_AVAILABLE:
        world.refusal = code
    else:
        world.record_bytes_max = 50
    assert world.code(syncing(generation, leader, parts)) == code
    assert waiting[0].error_code == code
    assert world.code(beating(generation, leader)) == ErrorCode.REBALANCE_IN_PROGRESS
    world.refusal, world.record_bytes_max = None, 1 << 20
    world.ask(joining(follower))
    generation = world.reply(joining(leader)).generation_id
    assert world.reply(syncing(generation, leader, parts)).assignment == b"x" * 100


def test_a_static_member_whose_record_is_refused_joins_by_a_rebalance() -> None:
    world = World()
    first = world.reply(joining(group_instance_id="i"))
    assert world.code(syncing(1, first.member_id, {}, group_instance_id="i")) == 0
    world.record_bytes_max = 50
    second = world.reply(joining(group_instance_id="i"))
    assert (second.error_code, second.generation_id) == (0, 2)
    assert second.member_id != first.member_id
    world.record_bytes_max = 1 << 20
    assert world.code(syncing(2, second.member_id, {}, group_instance_id="i")) == 0


def test_a_member_whose_leaving_is_refused_is_still_out_after_its_session() -> None:
    world = ConsumerWorld(t=4)
    one, two = Consumer(world, "one"), Consumer(world, "two")
    for member in (one, two, one, two):
        member.beat()
    world.refusal = NOT_AVAILABLE
    leave = consumer_group_heartbeat.Request(GROUP, one.id, -1)
    assert world.code(leave, 1) == NOT_AVAILABLE
    world.refusal = None
    for _ in range(20):
        world.pass_time(5000)
        two.beat()
    assert list(world.machine.consumers.by_id[GROUP].members) == ["two"]


def test_topics_that_grew_while_the_log_took_nothing_are_assigned_later() -> None:
    world = ConsumerWorld(t=1)
    one = Consumer(world, "one")
    one.beat()
    world.change_topics(t=2)
    world.refusal = NOT_AVAILABLE
    assert world.code(one.request(), 1) == NOT_AVAILABLE
    world.refusal = None
    one.beat()
    assert one.owned == {("t", 0), ("t", 1)}


def test_an_expired_session_that_cannot_be_written_is_tried_again() -> None:
    world = ConsumerWorld(t=1)
    Consumer(world, "one").beat()
    world.refusal = ErrorCode.UNKNOWN_SERVER_ERROR
    world.pass_time(60_000)
    assert list(world.machine.consumers.by_id[GROUP].members) == ["one"]
    world.refusal = None
    world.pass_time(1000)
    assert not world.machine.consumers.by_id[GROUP].members


def test_sessions_of_different_groups_that_end_together_are_different_decisions() -> None:
    world = World()
    for group in ("a", "b", "c"):
        member = new_id(world, group=group)
        world.ask(joining(member, group=group))
    world.appends = 0
    while not world.appends:
        deadline = world.machine.next_deadline()
        assert deadline is not None
        world.clock.now_ms = max(world.clock.now_ms, deadline)
        world.host.tick()
    assert world.appends == 3


@pytest.mark.parametrize("seed", range(4))
def test_extreme_values_in_any_request_harm_no_other_group(seed: int) -> None:
    world = ConsumerWorld(t=4)
    Consumer(world, "good").beat()
    hostile = Hostile(Random(seed))
    for number in range(600):
        version, request = hostile.request()
        asked = world.ask(request, version)
        assert len(asked) <= 1
        if number % 20 == 0:
            world.pass_time(hostile.random.choice([1, 500, 10_000]))
            Consumer(world, "good").beat()
    assert "good" in world.machine.consumers.by_id[GROUP].members
    world.reload()
    assert "good" in world.machine.consumers.by_id[GROUP].members


class Hostile:
    """Requests whose fields are of the right type, and no more than that."""

    GROUPS = ("evil", "", LONGEST, GROUP + "-2")
    IDS = ("", *(f"app-{n}" for n in range(1, 8)), "1", "static-3", LONGEST, "static")
    NUMBERS = (0, 1, -1, -2, 2, 2**31 - 1, -(2**31))
    LONG = (0, -1, 2**63 - 1, -(2**63), 5)
    BYTES = (b"", b"\x00", b"\x00\x01" + b"\xff" * 20, subscription("t"), b"\x7f" * 5000)

    def __init__(self, random: Random) -> None:
        self.random = random

    def request(self) -> tuple[int, Any]:
        make = self.random.choice(
            [self.join, self.sync, self.beat, self.leave, self.commit, self.fetch, self.delete,
             self.consume]
        )  # fmt: skip
        request = make()
        versions = getattr(request, "VERSIONS", range(8, 11))
        return self.random.choice(versions), request

    def one_of(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def some(self, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(self.random.randrange(3))]

    def instance(self) -> str | None:
        return self.one_of([None, None, *self.IDS])

    def join(self) -> join_group.Request:
        return join_group.Request(
            self.one_of(self.GROUPS), self.one_of([*self.NUMBERS, 10_000, 10_000, 10_000]),
            self.one_of(self.NUMBERS), self.one_of(self.IDS), self.instance(),
            self.one_of(["consumer", "", "other"]), self.some(self.protocol),
        )  # fmt: skip

    def protocol(self) -> join_group.JoinGroupRequestProtocol:
        name = self.one_of(["range", "", LONGEST])
        return join_group.JoinGroupRequestProtocol(name, self.one_of(self.BYTES))

    def sync(self) -> sync_group.Request:
        return sync_group.Request(
            self.one_of(self.GROUPS), self.one_of(self.NUMBERS), self.one_of(self.IDS),
            self.instance(), None, None, self.some(self.assignment),
        )  # fmt: skip

    def assignment(self) -> sync_group.SyncGroupRequestAssignment:
        return sync_group.SyncGroupRequestAssignment(
            self.one_of(self.IDS), self.one_of([*self.BYTES, b"x" * (2 << 20)])
        )

    def beat(self) -> heartbeat.Request:
        group, number = self.one_of(self.GROUPS), self.one_of(self.NUMBERS)
        return heartbeat.Request(group, number, self.one_of(self.IDS), self.instance())

    def leave(self) -> leave_group.Request:
        members = [leave_group.MemberIdentity(self.one_of(self.IDS), self.instance())]
        return leave_group.Request(self.one_of(self.GROUPS), self.one_of(self.IDS), members)

    def commit(self) -> offset_commit.Request:
        retention_ms = self.one_of(self.LONG)
        epoch = self.one_of(self.NUMBERS) if retention_ms == -1 else -1  # One version has both.
        part = offset_commit.OffsetCommitRequestPartition(
            self.one_of([0, 2**31 - 1]), self.one_of(self.LONG), epoch,
            self.one_of([None, "", "\u20ac" * 4096, "x" * 5000]),
        )  # fmt: skip
        topic = offset_commit.OffsetCommitRequestTopic(
            self.one_of(["t", LONGEST]), bytes(16), [part]
        )
        return offset_commit.Request(
            self.one_of(self.GROUPS), self.one_of(self.NUMBERS), self.one_of(self.IDS),
            self.instance(), retention_ms, [topic],
        )  # fmt: skip

    def fetch(self) -> offset_fetch.OffsetFetchRequestGroup:
        topic = offset_fetch.OffsetFetchRequestTopics("t", bytes(16), list(self.NUMBERS))
        return offset_fetch.OffsetFetchRequestGroup(
            self.one_of(self.GROUPS), self.one_of([None, *self.IDS]), self.one_of(self.NUMBERS),
            self.one_of([None, [], [topic]]),
        )  # fmt: skip

    def delete(self) -> offset_delete.Request:
        part = offset_delete.OffsetDeleteRequestPartition(self.one_of(self.NUMBERS))
        topic = offset_delete.OffsetDeleteRequestTopic("t", [part])
        return offset_delete.Request(self.one_of(self.GROUPS), [topic])

    def consume(self) -> consumer_group_heartbeat.Request:
        owned = consumer_group_heartbeat.TopicPartitions(bytes(16), list(self.NUMBERS))
        request = consumer_group_heartbeat.Request(
            self.one_of(self.GROUPS), self.one_of(self.IDS), self.one_of([0, 0, 0, *self.NUMBERS])
        )
        request.instance_id = self.instance()
        request.rack_id = self.one_of([None, "", LONGEST])
        request.rebalance_timeout_ms = self.one_of(self.NUMBERS)
        request.subscribed_topic_names = self.one_of([None, [], ["t"], [LONGEST] * 40])
        request.subscribed_topic_regex = self.one_of([None, "", "t", "(", LONGEST])
        request.server_assignor = self.one_of([None, "range", ""])
        request.topic_partitions = self.one_of([None, [], [owned]])
        return request
