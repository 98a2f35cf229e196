"""Classic members of a consumer group are told when to rejoin, and get what is their own."""

import pytest

from ottla.groups.coordinator import DescribeConsumerGroup
from ottla.groups.settings import ConsumerTimes, GroupSettings
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import leave_group, sync_group
from tests.unit.groups.consuming import Consumer, ConsumerWorld
from tests.unit.groups.driving import GROUP, beating, joining, leaving, new_id, syncing
from tests.unit.groups.mixing import COOPERATIVE, ClassicConsumer, settle_all

ALL = {("t", index) for index in range(4)}


class Mixed:
    def __init__(self, **fields: str) -> None:
        self.world = ConsumerWorld(t=4)
        self.old = ClassicConsumer(self.world, **fields)
        self.new = Consumer(self.world, "new")
        settle_all(self.world, self.old)
        settle_all(self.world, self.old, self.new)

    def code(self, generation: int, member_id: str = "", instance: str | None = None) -> int:
        return self.world.code(beating(generation, member_id or self.old.id, instance))


@pytest.fixture
def mixed() -> Mixed:
    return Mixed()


def test_a_heartbeat_is_checked_like_any_other(mixed: Mixed) -> None:
    assert mixed.code(mixed.old.generation) == 0
    assert mixed.code(mixed.old.generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert mixed.code(1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert mixed.code(mixed.new.epoch, "new") == ErrorCode.UNKNOWN_MEMBER_ID
    assert mixed.code(1, instance="one") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_is_told_to_rejoin_when_there_is_a_new_target(mixed: Mixed) -> None:
    Consumer(mixed.world, "newer").beat()
    assert mixed.code(mixed.old.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    sync = syncing(mixed.old.generation, mixed.old.id)
    assert mixed.world.code(sync) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_rejoin_in_time_is_out(mixed: Mixed) -> None:
    Consumer(mixed.world, "newer").beat()
    for _ in range(6):
        assert mixed.code(mixed.old.generation) == ErrorCode.REBALANCE_IN_PROGRESS
        mixed.world.pass_time(5_000)
    assert mixed.code(mixed.old.generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_time_to_rejoin_begins_with_a_sync_that_says_so(mixed: Mixed) -> None:
    Consumer(mixed.world, "newer").beat()
    sync = syncing(mixed.old.generation, mixed.old.id)
    assert mixed.world.code(sync) == ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(5):
        mixed.world.pass_time(5_000)
        assert mixed.code(mixed.old.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    mixed.world.pass_time(5_000)
    assert mixed.code(mixed.old.generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_sync_in_time_is_out(mixed: Mixed) -> None:
    late = new_id(mixed.world)
    mixed.world.ask(joining(late, session_timeout_ms=60_000))
    mixed.world.pass_time(29_999)
    group = mixed.world.machine.consumers.by_id[GROUP]
    assert late in group.members
    mixed.world.pass_time(1)
    assert late not in group.members


def test_an_assignment_is_given_by_the_protocol_that_was_joined_with(mixed: Mixed) -> None:
    generation, member = mixed.old.generation, mixed.old.id
    good = sync_group.Request(GROUP, generation, member, None, "consumer", "range")
    assert mixed.world.reply(good).protocol_name == "range"
    for protocol in (("connect", "range"), ("consumer", "roundrobin")):
        bad = sync_group.Request(GROUP, generation, member, None, *protocol)
        assert mixed.world.code(bad) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_without_a_protocol_in_common_may_not_join(mixed: Mixed) -> None:
    refused = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert mixed.world.code(joining(protocols={"cosy": b""})) == refused
    assert mixed.world.code(joining(protocol_type="connect")) == refused
    assert mixed.world.code(joining("m", protocols={"range": b"\xff"})) == refused
    assert mixed.world.code(joining()) == ErrorCode.MEMBER_ID_REQUIRED


def test_an_old_client_without_an_id_is_a_member_at_once(mixed: Mixed) -> None:
    reply = mixed.world.reply(joining(), 3)
    assert reply.error_code == 0
    assert reply.member_id in mixed.world.machine.consumers.by_id[GROUP].members


def test_a_full_group_takes_no_classic_member_either() -> None:
    world = ConsumerWorld(GroupSettings(initial_rebalance_delay_ms=0, consumer_size_max=1), t=4)
    Consumer(world, "new").beat()
    assert world.code(joining()) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_cooperative_members_keep_what_stays_theirs_and_give_up_the_rest_in_their_time() -> None:
    world = ConsumerWorld(t=4)
    old, new = ClassicConsumer(world, protocol=COOPERATIVE), Consumer(world, "new")
    settle_all(world, old)
    for _ in range(12):
        new.beat()
        assert not old.owned & new.owned, "it has not said that it gave them up"
        old.step()
        assert len(old.owned) >= 2, "not for a moment was it without all of them"
    settle_all(world, old, new)
    assert old.owned | new.owned == ALL


def test_a_lone_classic_member_sees_to_a_target_by_itself() -> None:
    """Nobody of the new protocol is left who would: the group may not go back."""
    mixed = Mixed()
    mixed.world.settings = GroupSettings(initial_rebalance_delay_ms=0, size_max=0)
    mixed.world.times = ConsumerTimes(assignment_interval_ms=1000)
    mixed.world.reload()
    mixed.new.leave()
    settle_all(mixed.world, mixed.old)
    assert GROUP in mixed.world.machine.consumers.by_id
    assert mixed.old.owned == ALL


def test_members_leave_together_whichever_their_protocol(mixed: Mixed) -> None:
    who = [(mixed.old.id, None), ("new", None), ("nobody", None), ("", "one")]
    members = [leave_group.MemberIdentity(*one) for one in who]
    answers = mixed.world.reply(leave_group.Request(GROUP, members=members)).members
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [one.error_code for one in answers] == [0, 0, unknown, unknown]
    assert mixed.world.machine.consumers.by_id[GROUP].is_empty


def test_a_described_group_tells_who_speaks_what(mixed: Mixed) -> None:
    described = mixed.world.reply(DescribeConsumerGroup(GROUP), 1)
    assert {m.member_id: m.member_type for m in described.members} == {mixed.old.id: 0, "new": 1}


def test_a_new_static_member_takes_the_place_of_a_classic_one() -> None:
    mixed = Mixed(instance="one")
    owned, epoch = mixed.old.owned, mixed.world.machine.consumers.by_id[GROUP].epoch
    upgraded = Consumer(mixed.world, "upgraded", instance_id="one")
    upgraded.beat()
    assert upgraded.owned == owned
    group = mixed.world.machine.consumers.by_id[GROUP]
    assert (group.epoch, set(group.members)) == (epoch, {"new", "upgraded"})
    assert mixed.code(1, instance="one") == ErrorCode.FENCED_INSTANCE_ID
    mixed.world.reload()
    settle_all(mixed.world, mixed.new, upgraded)
    assert mixed.new.owned | upgraded.owned == ALL


def test_a_classic_static_member_takes_the_place_of_a_new_one() -> None:
    world = ConsumerWorld(t=4)
    new = Consumer(world, "new", instance_id="one")
    other = Consumer(world, "other")
    settle_all(world, new, other)
    old = ClassicConsumer(world, instance="one")
    for _ in range(2):
        old.step()
    old.step()
    assert old.owned == new.owned
    assert world.reply(new.request(), 1).code == ErrorCode.FENCED_INSTANCE_ID
    assert GROUP in world.machine.consumers.by_id, "another new one is still there"


def test_the_last_new_static_member_that_is_replaced_makes_it_classic_without_a_rebalance() -> None:
    mixed = Mixed()
    mixed.new.leave()
    settle_all(mixed.world, mixed.old)
    new = Consumer(mixed.world, "new", instance_id="one")
    settle_all(mixed.world, mixed.old, new)
    group = mixed.world.machine.consumers.by_id[GROUP]
    epoch, owned = group.epoch, new.owned
    back = ClassicConsumer(mixed.world, instance="one")
    for _ in range(3):
        back.step()
    assert (back.owned, back.generation) == (owned, epoch)
    mixed.world.pass_time(1000)
    assert mixed.world.machine.groups[GROUP].generation == epoch
    assert mixed.code(mixed.old.generation) == 0, "nobody is disturbed"
    settle_all(mixed.world, mixed.old, back)
    assert mixed.old.owned | back.owned == ALL


def test_if_what_it_reads_differs_all_have_to_join_again() -> None:
    mixed = Mixed()
    mixed.new.leave()
    settle_all(mixed.world, mixed.old)
    new = Consumer(mixed.world, "new", instance_id="one")
    settle_all(mixed.world, mixed.old, new)
    mixed.world.change_topics(u=2)
    back = ClassicConsumer(mixed.world, "t", "u", instance="one")
    back.step()
    assert GROUP in mixed.world.machine.groups
    settle_all(mixed.world, mixed.old, back)
    assert mixed.old.owned | back.owned == ALL | {("u", 0), ("u", 1)}


def test_an_admin_removes_a_static_member_by_its_instance() -> None:
    mixed = Mixed(instance="one")
    assert mixed.world.reply(leaving("", "one")).members[0].error_code == 0
    assert set(mixed.world.machine.consumers.by_id[GROUP].members) == {"new"}
