"""A group in use goes over to the new protocol and back, with members of both kinds meanwhile."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.groups.settings import ConsumerTimes, GroupSettings, MigrationPolicy
from ottla.model.errors import ErrorCode
from ottla.protocol import consumer_group_records as records
from ottla.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_versioned
from ottla.protocol.group_records import GroupMetadataKey
from tests.unit.groups.consuming import Consumer, ConsumerWorld
from tests.unit.groups.driving import GROUP, SETTINGS, joining, new_id, stable, syncing
from tests.unit.groups.mixing import (
    COOPERATIVE,
    EAGER,
    SESSION_MS,
    ClassicConsumer,
    settle_all,
)

ALL = {("t", index) for index in range(4)}


def world_with(migration: MigrationPolicy) -> ConsumerWorld:
    return ConsumerWorld(GroupSettings(initial_rebalance_delay_ms=0, migration=migration), t=4)


def test_the_first_member_of_the_new_protocol_turns_the_group_into_a_consumer_group() -> None:
    world = ConsumerWorld(t=4)
    old = ClassicConsumer(world)
    settle_all(world, old)
    assert old.owned == ALL
    generation = old.generation
    new = Consumer(world, "new")
    new.beat()
    assert (new.error, new.owned) == (0, frozenset())
    group = world.machine.consumers.by_id[GROUP]
    assert GROUP not in world.machine.groups
    assert group.epoch == group.target_epoch == generation + 1
    member = group.members[old.id]
    assert (member.epoch, member.is_classic) == (generation, True)
    assert sum(map(len, member.assigned.values())) == 4, "it owns what it owned"


@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_old_and_new_members_share_the_topic(protocol: str) -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world, protocol=protocol), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    assert (len(old.owned), len(new.owned)) == (2, 2)
    assert old.owned | new.owned == ALL
    assert world.machine.consumers.by_id[GROUP].state == "Stable"


@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_the_last_new_member_that_leaves_makes_it_a_classic_group_that_rebalances(
    protocol: str,
) -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world, protocol=protocol), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    epoch = world.machine.consumers.by_id[GROUP].epoch
    assert new.leave().member_epoch == -1
    assert GROUP not in world.machine.consumers.by_id
    assert world.machine.groups[GROUP].generation == epoch
    world.pass_time(0)
    assert world.machine.groups[GROUP].state.value == "PreparingRebalance", "before any request"
    settle_all(world, old)
    assert old.owned == ALL
    assert world.machine.groups[GROUP].generation == epoch + 1


def test_a_rolling_upgrade_and_back_never_leaves_a_partition_for_long() -> None:
    world = ConsumerWorld(t=4)
    old = [ClassicConsumer(world, protocol=COOPERATIVE) for _ in range(2)]
    settle_all(world, *old)
    new = [Consumer(world, f"new{i}") for i in range(2)]
    settle_all(world, *old, new[0])
    old[0].leave()
    settle_all(world, old[1], new[0])
    settle_all(world, old[1], *new)
    old[1].leave()
    settle_all(world, *new)
    assert new[0].owned | new[1].owned == ALL
    back = [ClassicConsumer(world) for _ in range(2)]
    settle_all(world, back[0], *new)
    new[0].leave()
    settle_all(world, *back, new[1])
    new[1].leave()
    settle_all(world, *back)
    assert back[0].owned | back[1].owned == ALL
    assert world.machine.groups[GROUP].state.value == "Stable"


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_classic_member_that_goes_makes_room(is_silent: bool) -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    if is_silent:
        for _ in range(3):
            new.beat()
            world.pass_time(4_000)
    else:
        assert old.leave().members[0].error_code == 0
    settle_all(world, new)
    assert new.owned == ALL
    assert GROUP in world.machine.consumers.by_id


def test_members_that_are_never_heard_of_again_are_out_whichever_way_the_group_went() -> None:
    world = ConsumerWorld(t=4)
    old, other = ClassicConsumer(world), ClassicConsumer(world)
    settle_all(world, old, other)
    new = Consumer(world, "new")
    new.beat()
    world.pass_time(SESSION_MS)
    assert set(world.machine.consumers.by_id[GROUP].members) == {"new"}
    settle_all(world, old, new)
    new.leave()
    world.pass_time(SESSION_MS)
    assert world.machine.groups[GROUP].members == {}


def test_members_of_both_kinds_that_fall_silent_together_are_out_together() -> None:
    world = ConsumerWorld(t=4)
    world.times = ConsumerTimes(SESSION_MS, assignment_interval_ms=0)
    old, other, new = ClassicConsumer(world), ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old, other)
    settle_all(world, old, other, new)
    world.reload()  # From here on all sessions begin anew, at the same time.
    world.pass_time(SESSION_MS - 1)
    other.step()
    world.pass_time(1)
    assert GROUP not in world.machine.consumers.by_id
    assert set(world.machine.groups[GROUP].members) == {other.id}
    settle_all(world, other)
    assert other.owned == ALL


def test_a_classic_member_has_its_own_session_after_a_reload_too() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    world.reload()
    world.pass_time(SESSION_MS)
    assert set(world.machine.consumers.by_id[GROUP].members) == {"new"}


def test_a_silent_new_member_that_was_the_last_makes_it_classic_again() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    for _ in range(6):
        old.step()
        world.pass_time(8_000)
    settle_all(world, old)
    assert old.owned == ALL
    assert GROUP in world.machine.groups


def test_what_a_member_still_reads_is_kept_for_it_there_and_back_and_there_again() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    new.beat()
    new.leave()
    next_ = Consumer(world, "next")
    next_.beat()
    assert old.owned == ALL, "nobody has told it anything yet"
    assert next_.owned == frozenset()
    settle_all(world, old, next_)
    assert (len(old.owned), len(next_.owned)) == (2, 2)


def test_a_static_member_that_comes_back_as_a_classic_one_gets_nothing_that_others_read() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new", instance_id="one")
    settle_all(world, old)
    new.beat()
    new.leave(-2)
    back = ClassicConsumer(world, instance="one")
    for _ in range(3):
        back.step()
        assert not back.owned & old.owned
    settle_all(world, old, back)
    assert (len(old.owned), len(back.owned)) == (2, 2)


def test_who_waited_for_a_rebalance_is_not_forgotten_when_a_static_member_upgrades_it() -> None:
    world = ConsumerWorld(t=4)
    old, second = ClassicConsumer(world, instance="one"), ClassicConsumer(world)
    settle_all(world, old)
    for _ in range(3):
        second.step()  # It has joined, and waits for the other.
    new = Consumer(world, "new", instance_id="one")
    settle_all(world, second, new)
    assert (len(second.owned), len(new.owned)) == (2, 2)


def test_a_static_member_that_upgrades_a_group_before_its_rebalance_gets_what_nobody_has() -> None:
    world = ConsumerWorld(t=4)
    new, old = Consumer(world, "new"), ClassicConsumer(world, instance="one")
    settle_all(world, new)
    old.step()  # It waits for what the other one has.
    new.leave()
    assert world.machine.groups[GROUP].state.value == "Stable", "the rebalance begins later"
    back = Consumer(world, "back", instance_id="one")
    settle_all(world, back)
    assert back.owned == ALL


def test_a_static_member_that_restarts_before_a_rebalance_does_not_hide_it_from_the_log() -> None:
    world = ConsumerWorld(t=4)
    new, old = Consumer(world, "new"), ClassicConsumer(world, instance="one")
    settle_all(world, new)
    old.step()
    new.leave()
    back = ClassicConsumer(world, instance="one")
    back.step()
    world.reload()
    settle_all(world, back)
    assert back.owned == ALL


@pytest.mark.parametrize("is_answer_lost", [False, True])
def test_upgrade_gives_away_no_partition_that_a_cooperative_member_has_not_revoked(
    is_answer_lost: bool,
) -> None:
    world = ConsumerWorld(t=4)
    first = ClassicConsumer(world, protocol=COOPERATIVE)
    second = ClassicConsumer(world, protocol=COOPERATIVE)
    settle_all(world, first)
    for _ in range(3):
        second.step()  # It has joined, and waits for the other.
    while first.syncing is None:
        first.step()  # The leader's SyncGroup takes two partitions from itself.
    assert first.owned == ALL, "the answer to SyncGroup was not read yet"
    new = Consumer(world, "new")
    for _ in range(3):
        new.beat()
        assert not new.owned
    if is_answer_lost:
        first.syncing = None
        first.join()  # It still owns all.
        new.beat()
        assert not new.owned
    for _ in range(12):
        for member in (first, second):
            member.step()
            new.beat()
            assert not new.owned & first.owned, "before the first one has revoked"
    settle_all(world, first, second, new)
    owned = [p for member in (first, second, new) for p in member.owned]
    assert sorted(owned) == sorted(ALL)


def test_those_who_wait_are_left_alone_if_the_group_cannot_be_upgraded() -> None:
    world = ConsumerWorld(t=4)
    stable(world)
    waiting = world.ask(joining(new_id(world)))
    new = Consumer(world, "new")
    new.beat()
    assert new.error == ErrorCode.GROUP_ID_NOT_FOUND, "its assignment is not a consumer's"
    assert waiting == []
    assert GROUP in world.machine.groups


def test_members_that_wait_for_an_assignment_are_told_to_join_again() -> None:
    world = ConsumerWorld(t=4)
    leader, follower = new_id(world), ""
    world.ask(joining(leader))
    follower = new_id(world)
    waiting = world.ask(joining(follower))
    generation = world.reply(joining(leader)).generation_id
    synced = world.ask(syncing(generation, follower))
    assert waiting[0].error_code == 0
    assert synced == []
    Consumer(world, "new").beat()
    assert synced[0].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(world.machine.consumers.by_id[GROUP].members) == {leader, follower, "new"}


@pytest.mark.parametrize(
    ("migration", "is_allowed"),
    [
        (MigrationPolicy.BIDIRECTIONAL, True),
        (MigrationPolicy.UPGRADE, True),
        (MigrationPolicy.DOWNGRADE, False),
        (MigrationPolicy.DISABLED, False),
    ],
)
def test_the_policy_says_whether_a_group_may_be_upgraded(
    migration: MigrationPolicy, is_allowed: bool
) -> None:
    world = world_with(migration)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    new.beat()
    assert new.error == (0 if is_allowed else ErrorCode.GROUP_ID_NOT_FOUND)
    assert (GROUP in world.machine.groups) != is_allowed


@pytest.mark.parametrize("migration", [MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE])
def test_the_policy_says_whether_a_group_may_be_downgraded(migration: MigrationPolicy) -> None:
    world = world_with(migration)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    new.leave()
    settle_all(world, old)
    assert old.owned == ALL, "either way it goes on"
    assert (GROUP in world.machine.groups) == migration.is_downgrade_allowed


def test_without_migration_classic_members_may_not_join() -> None:
    world = world_with(MigrationPolicy.DISABLED)
    Consumer(world, "new").beat()
    assert world.code(joining()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_too_large_for_the_new_protocol_stays_classic() -> None:
    world = ConsumerWorld(GroupSettings(initial_rebalance_delay_ms=0, consumer_size_max=1), t=4)
    old = ClassicConsumer(world), ClassicConsumer(world)
    settle_all(world, *old)
    new = Consumer(world, "new")
    new.beat()
    assert new.error == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_too_large_for_the_classic_protocol_stays_a_consumer_group() -> None:
    world = ConsumerWorld(GroupSettings(initial_rebalance_delay_ms=0, size_max=1), t=4)
    new = Consumer(world, "new")
    old = ClassicConsumer(world), ClassicConsumer(world)
    settle_all(world, *old, new)
    new.leave()
    settle_all(world, *old)
    assert GROUP in world.machine.consumers.by_id
    assert old[0].owned | old[1].owned == ALL


def test_other_users_of_the_classic_protocol_are_not_upgraded() -> None:
    world = ConsumerWorld(t=4)
    world.ask(joining(new_id(world, protocol_type="connect"), protocol_type="connect"))
    new = Consumer(world, "new")
    new.beat()
    assert new.error == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_assignor_with_data_of_its_own_stays_classic() -> None:
    world = ConsumerWorld(t=4)
    member_id = new_id(world)
    generation = world.ask(joining(member_id))[0].generation_id
    own = encode_versioned(ConsumerProtocolAssignment([], b"own"), 1)
    world.ask(syncing(generation, member_id, {member_id: own}))
    new = Consumer(world, "new")
    new.beat()
    assert new.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert GROUP in world.machine.groups


def test_the_records_of_both_ways_are_in_kafkas_order() -> None:
    """Kafka reads its log strictly: a group ends only after all that belongs to it."""
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    start = len(world.log)
    new.beat()
    kinds = [(type(key).__name__, value is None) for key, value in world.log[start:]]
    assert kinds[:6] == [
        ("GroupMetadataKey", True),
        ("ConsumerGroupMemberMetadataKey", False),
        ("ConsumerGroupMetadataKey", False),
        ("ConsumerGroupTargetAssignmentMemberKey", False),
        ("ConsumerGroupTargetAssignmentMetadataKey", False),
        ("ConsumerGroupCurrentMemberAssignmentKey", False),
    ]
    start = len(world.log)
    new.leave()
    written = world.log[start:]
    assert [type(key).__name__ for key, _ in written] == [
        *["ConsumerGroupCurrentMemberAssignmentKey"] * 2,
        *["ConsumerGroupTargetAssignmentMemberKey"] * 2,
        "ConsumerGroupTargetAssignmentMetadataKey",
        *["ConsumerGroupMemberMetadataKey"] * 2,
        "ConsumerGroupPartitionMetadataKey",
        "ConsumerGroupMetadataKey",
        "GroupMetadataKey",
    ]
    assert all(value is None for _, value in written[:-1])
    (member,) = written[-1].value.members
    assert member.member_id == old.id


def test_a_lost_coordinator_still_rebalances_what_it_made_classic() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    new.leave()
    world.reload()
    assert world.machine.groups[GROUP].state.value == "PreparingRebalance"
    settle_all(world, old)
    assert old.owned == ALL
    world.reload()
    assert world.machine.groups[GROUP].state.value == "Stable", "once is enough"


@pytest.mark.parametrize("steps", range(14))
def test_the_coordinator_is_lost_after_any_step_of_a_migration(steps: int) -> None:
    world = ConsumerWorld(t=4)
    old = [ClassicConsumer(world, protocol=p) for p in (EAGER, EAGER)]
    settle_all(world, *old)
    new = [Consumer(world, f"new{i}") for i in range(2)]
    moves = [
        new[0].beat, old[0].step, old[1].step, new[0].beat, old[0].step, old[1].step, new[0].beat,
        old[0].leave, new[1].beat, old[1].step, old[1].leave, new[0].beat, new[0].leave,
        new[1].leave,
    ]  # fmt: skip
    for move in moves[: steps + 1]:
        move()
    world.reload()
    kept = [one for one in (*old, *new) if getattr(one, "id", "") and one_is_in(world, one.id)]
    settle_all(world, *kept)
    owned = [p for one in kept for p in one.owned]
    assert sorted(owned) == (sorted(ALL) if kept else [])


def one_is_in(world: ConsumerWorld, member_id: str) -> bool:
    consumers, classic = world.machine.consumers.by_id.get(GROUP), world.machine.groups.get(GROUP)
    return any(group is not None and member_id in group.members for group in (consumers, classic))


def test_nothing_but_the_groups_own_records_is_left_of_a_migration() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    new.leave()
    settle_all(world, old)
    last = {repr(key): (key, value) for key, value in world.log}
    left = [key for key, value in last.values() if value is not None]
    assert left == [GroupMetadataKey(GROUP)]
    gone = [key for key, value in last.values() if value is None]
    assert records.ConsumerGroupMetadataKey(GROUP) in gone


class Migration(RuleBasedStateMachine):
    """Members of both kinds come, go, stall; the coordinator is lost: nobody owns what another
    does, and in the end everything has an owner."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ConsumerWorld(SETTINGS, t=4, u=3)
        self.world.times = ConsumerTimes(assignment_interval_ms=1000)
        self.members: dict[str, Consumer | ClassicConsumer] = {}
        self.number = 0

    def pick(self, data: st.DataObject) -> str | None:
        return data.draw(st.sampled_from(sorted(self.members))) if self.members else None

    def step(self, name: str) -> None:
        member = self.members[name]
        member.step() if isinstance(member, ClassicConsumer) else member.beat()

    @rule(topics=st.sampled_from([("t",), ("u",), ("t", "u")]))
    def a_new_one_comes(self, topics: tuple[str, ...]) -> None:
        if len(self.members) < 5:
            self.number += 1
            name = f"new{self.number}"
            member = Consumer(self.world, name, subscribed_topic_names=list(topics))
            self.members[name] = member
            member.beat()

    @rule(topics=st.sampled_from([("t",), ("t", "u")]), is_eager=st.booleans())
    def an_old_one_comes(self, topics: tuple[str, ...], is_eager: bool) -> None:
        kinds = {m.protocol for m in self.members.values() if isinstance(m, ClassicConsumer)}
        if len(self.members) < 5:
            self.number += 1
            protocol = kinds.pop() if kinds else (EAGER if is_eager else COOPERATIVE)
            member = ClassicConsumer(self.world, *topics, protocol=protocol)
            self.members[f"old{self.number}"] = member
            member.step()

    @rule(is_new=st.booleans(), instance=st.sampled_from(["one", "two"]))
    def a_static_one_restarts(self, is_new: bool, instance: str) -> None:
        """Perhaps with the other protocol than before; its old process is gone."""
        old = self.members.pop(instance, None)
        if isinstance(old, Consumer) and is_new:
            old.leave(-2)
        if old is None and len(self.members) >= 5:
            return
        self.number += 1
        kinds = {m.protocol for m in self.members.values() if isinstance(m, ClassicConsumer)}
        member: Consumer | ClassicConsumer
        if is_new:
            member = Consumer(self.world, f"static{self.number}", instance_id=instance)
        else:
            protocol = kinds.pop() if kinds else EAGER
            member = ClassicConsumer(self.world, protocol=protocol, instance=instance)
        self.members[instance] = member
        self.step(instance)

    @rule(data=st.data())
    def an_answer_is_lost(self, data: st.DataObject) -> None:
        member = self.members.get(self.pick(data) or "")
        if isinstance(member, Consumer):
            member.lose_an_answer()

    @rule(data=st.data(), times=st.integers(1, 4))
    def someone_goes_on(self, data: st.DataObject, times: int) -> None:
        name = self.pick(data)
        for _ in range(times if name is not None else 0):
            self.step(name or "")

    @rule()
    def everyone_goes_on(self) -> None:
        for name in sorted(self.members):
            self.step(name)
        self.world.pass_time(400)

    @rule(data=st.data())
    def someone_leaves(self, data: st.DataObject) -> None:
        name = self.pick(data)
        if name is not None:
            self.members.pop(name).leave()

    @rule(data=st.data())
    def someone_dies(self, data: st.DataObject) -> None:
        name = self.pick(data)
        if name is not None:
            del self.members[name]
            for _ in range(60):  # A client's requests follow each other at once, heartbeats do not.
                self.everyone_goes_on()
                self.world.pass_time(500)

    @rule()
    def the_coordinator_is_lost(self) -> None:
        self.world.reload()

    @rule()
    def everyone_settles(self) -> None:
        settle_all(self.world, *self.members.values())
        for topic, size in self.world.topics.sizes.items():
            read = {topic for m in self.members.values() if topic in self.topics_of(m)}
            owned = {p for m in self.members.values() for p in m.owned if p[0] == topic}
            assert owned == {(topic, index) for index in range(size) if topic in read}

    def topics_of(self, member: Consumer | ClassicConsumer) -> list[str]:
        if isinstance(member, ClassicConsumer):
            return list(member.topics)
        topics: list[str] = member.fields["subscribed_topic_names"]
        return topics

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [p for member in self.members.values() for p in member.owned]
        assert len(owned) == len(set(owned))


TestMigration = Migration.TestCase
TestMigration.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
