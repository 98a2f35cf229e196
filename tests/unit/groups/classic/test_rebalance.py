"""Rebalances end in time: with those who came, without those who did not."""

from ottla.groups.classic.group import ClassicState
from ottla.groups.settings import GroupSettings
from ottla.model.errors import ErrorCode
from tests.unit.groups.driving import (
    GROUP,
    SETTINGS,
    World,
    beating,
    joining,
    leaving,
    new_id,
    stable,
    syncing,
)


def test_a_new_group_waits_for_more_members() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3000))
    first = world.ask(joining(new_id(world)))
    world.pass_time(2000)
    second = world.ask(joining(new_id(world)))
    world.pass_time(1000)
    assert not first, "a member came, so it waits on"
    world.pass_time(3000)
    assert first[0].generation_id == second[0].generation_id == 1
    assert len(first[0].members) == 2
    assert second[0].members == []
    assert first[0].leader == second[0].leader == first[0].member_id


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3000))
    first = world.ask(joining(new_id(world), rebalance_timeout_ms=7000))
    for _ in range(7):
        assert not first
        world.pass_time(1000)
        world.ask(joining(new_id(world), rebalance_timeout_ms=7000))
    assert first


def test_whoever_does_not_join_again_in_time_is_out() -> None:
    world = World()
    generation, (leader, late) = stable(world, 2)
    rejoined = world.ask(joining(leader))
    for _ in range(5):
        assert world.code(beating(generation, late)) == ErrorCode.REBALANCE_IN_PROGRESS
        world.pass_time(5_000)
    assert not rejoined
    world.pass_time(5_000)
    assert rejoined[0].generation_id == generation + 1
    assert [member.member_id for member in rejoined[0].members] == [leader]
    assert world.code(beating(generation, late)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_its_session_is_out_and_the_others_hear_of_it() -> None:
    world = World()
    generation, (leader, silent) = stable(world, 2)
    world.pass_time(9_000)
    assert world.code(beating(generation, leader)) == 0
    world.pass_time(1_000)
    assert world.code(beating(generation, leader)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.reply(joining(leader)).generation_id == generation + 1
    assert silent not in world.machine.groups[GROUP].members


def test_a_member_that_joined_but_never_synced_is_out() -> None:
    world = World()
    _, (leader,) = stable(world)
    lazy = new_id(world)
    first = world.ask(joining(lazy))
    generation = world.reply(joining(leader)).generation_id
    assert first
    world.ask(syncing(generation, leader, {leader: b"all"}))
    for _ in range(6):
        world.code(beating(generation, leader))
        world.code(beating(generation, lazy))
        world.pass_time(5_000)
    assert lazy not in world.machine.groups[GROUP].members
    assert leader in world.machine.groups[GROUP].members


def test_the_last_one_to_leave_leaves_an_empty_group_behind() -> None:
    world = World()
    generation, (leader,) = stable(world)
    assert world.reply(leaving(leader)).members[0].error_code == 0
    group = world.machine.groups[GROUP]
    assert group.state is ClassicState.EMPTY
    assert group.generation == generation + 1
    assert world.log[-1].value.members == []
    world.reload()
    assert world.machine.groups[GROUP].generation == generation + 1


def test_followers_that_wait_for_an_assignment_are_told_when_it_will_not_come() -> None:
    world = World()
    _, (leader,) = stable(world)
    follower = new_id(world)
    world.ask(joining(follower))
    generation = world.reply(joining(leader)).generation_id
    waiting = world.ask(syncing(generation, follower))
    assert not waiting
    world.ask(leaving(leader))
    assert waiting[0].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_is_late_stays_until_its_session_ends() -> None:
    world = World()
    first = world.reply(joining(group_instance_id="one", session_timeout_ms=60_000))
    world.reply(syncing(1, first.member_id, {}, group_instance_id="one"))
    newcomer = new_id(world)
    waiting = world.ask(joining(newcomer))
    for _ in range(6):
        world.pass_time(5_000)
    assert waiting[0].leader == newcomer, "the leader is late, so another one leads"
    assert {m.group_instance_id for m in waiting[0].members} == {"one", None}


def test_a_group_of_late_static_members_waits_on() -> None:
    world = World()
    first = world.reply(joining(group_instance_id="one", session_timeout_ms=600_000))
    second = world.ask(joining(group_instance_id="two", session_timeout_ms=600_000))
    world.pass_time(30_000)
    assert second[0].generation_id == 2
    assert len(world.machine.groups[GROUP].members) == 2
    assert first.generation_id == 1


def test_a_lowered_limit_makes_a_loaded_group_rebalance() -> None:
    world = World()
    stable(world, 2)
    world.settings = GroupSettings(initial_rebalance_delay_ms=0, size_max=1)
    world.reload()
    assert world.machine.groups[GROUP].state is ClassicState.PREPARING_REBALANCE
    world.settings = SETTINGS


def test_a_member_that_never_came_back_with_its_id_does_not_hold_up_the_others() -> None:
    world = World()
    _, (leader,) = stable(world)
    new_id(world)
    joining_again = world.ask(joining(leader))
    assert not joining_again
    world.pass_time(10_000)
    assert joining_again[0].generation_id == 2
