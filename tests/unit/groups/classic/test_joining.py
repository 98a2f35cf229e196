"""JoinGroup, with every way to be refused."""

import pytest

from ottla.groups.classic.group import ClassicState
from ottla.groups.settings import GroupSettings
from ottla.model.errors import ErrorCode
from tests.unit.groups.driving import (
    GROUP,
    World,
    beating,
    joining,
    new_id,
    stable,
    subscription,
    syncing,
)


def test_a_member_without_an_id_is_given_one_first() -> None:
    world = World()
    reply = world.reply(joining())
    assert reply.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert reply.member_id == "app-1"
    joined = world.reply(joining("app-1"))
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, "app-1")
    assert joined.protocol_name == "range"
    assert joined.members[0].metadata == subscription("t")


def test_an_old_client_joins_at_once() -> None:
    world = World()
    reply = world.reply(joining(), version=3)
    assert (reply.error_code, reply.generation_id) == (0, 1)


def test_the_oldest_clients_have_one_timeout_for_both() -> None:
    world = World()
    world.reply(joining(rebalance_timeout_ms=-1), version=0)
    (member,) = world.machine.groups[GROUP].members.values()
    assert member.rebalance_timeout_ms == 10_000


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "unheard-of"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_what_cannot_join_is_refused(fields: dict[str, object], code: ErrorCode) -> None:
    world = World()
    assert world.code(joining(**fields)) == code
    assert not world.machine.groups, "a refused member leaves no group behind"


def test_a_member_with_other_protocols_is_refused() -> None:
    world = World()
    stable(world)
    assert world.code(joining(protocols={"sticky": b""})) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_else() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=0, size_max=1))
    generation, (leader,) = stable(world)
    assert world.code(joining()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.code(beating(generation, leader)) == 0


def test_a_follower_that_joins_again_unchanged_hears_its_generation() -> None:
    world = World()
    generation, (leader, follower) = stable(world, 2)
    again = world.reply(joining(follower))
    assert (again.generation_id, again.leader, again.members) == (generation, leader, [])
    assert world.machine.groups[GROUP].state is ClassicState.STABLE


def test_a_leader_that_joins_again_begins_a_rebalance() -> None:
    world = World()
    generation, (leader,) = stable(world)
    assert world.reply(joining(leader)).generation_id == generation + 1


def test_a_follower_with_another_subscription_begins_a_rebalance() -> None:
    world = World()
    generation, (leader, follower) = stable(world, 2)
    waiting = world.ask(joining(follower, protocols={"range": subscription("u")}))
    assert not waiting
    assert world.code(beating(generation, leader)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.reply(joining(leader)).generation_id == generation + 1
    assert waiting[0].generation_id == generation + 1


def test_a_member_that_missed_the_answer_hears_it_again() -> None:
    world = World()
    member = new_id(world)
    first = world.reply(joining(member))
    assert world.reply(joining(member)) == first


def test_only_the_last_of_two_waiting_joins_is_answered_with_a_generation() -> None:
    world = World()
    _, (leader,) = stable(world)
    member = new_id(world)
    first = world.ask(joining(member))
    second = world.ask(joining(member))
    assert first[0].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.reply(joining(leader)).generation_id == 2
    assert second[0].generation_id == 2


def test_a_static_member_that_is_back_keeps_the_generation() -> None:
    world = World()
    first = world.reply(joining(group_instance_id="one"))
    world.reply(syncing(1, first.member_id, {first.member_id: b"all"}, group_instance_id="one"))
    back = world.reply(joining(group_instance_id="one"))
    assert back.member_id != first.member_id
    assert (back.generation_id, back.skip_assignment, back.leader) == (1, True, back.member_id)
    assert len(back.members) == 1
    synced = world.reply(syncing(1, back.member_id, group_instance_id="one"))
    assert synced.assignment == b"all"
    fenced = beating(1, first.member_id, "one")
    assert world.code(fenced) == ErrorCode.FENCED_INSTANCE_ID
    world.reload()
    assert world.code(beating(1, back.member_id, "one")) == 0


def test_a_static_member_of_a_rebalance_that_was_lost_is_fenced_under_its_new_id() -> None:
    """As in Kafka: the log has the ids of the last generation that was synced."""
    world = World()
    first = world.reply(joining(group_instance_id="one"))
    world.reply(syncing(1, first.member_id, {first.member_id: b"all"}, group_instance_id="one"))
    world.ask(joining(new_id(world)))
    back = world.reply(joining(group_instance_id="one"))
    assert back.generation_id == 2
    world.reload()
    again = joining(back.member_id, group_instance_id="one")
    assert world.code(again) == ErrorCode.FENCED_INSTANCE_ID
    assert world.reply(joining(group_instance_id="one")).generation_id == 1


def test_an_older_static_leader_that_is_back_is_not_told_that_it_leads() -> None:
    world = World()
    first = world.reply(joining(group_instance_id="one"))
    world.reply(syncing(1, first.member_id, {first.member_id: b"all"}, group_instance_id="one"))
    back = world.reply(joining(group_instance_id="one"), version=8)
    assert (back.leader, back.members, back.skip_assignment) == (first.member_id, [], False)


def test_an_instance_id_that_leaves_no_room_for_a_member_id_is_refused() -> None:
    world = World()
    request = joining(group_instance_id="x" * 32_767)
    assert world.code(request, 5) == ErrorCode.INVALID_REQUEST
    assert world.code(joining(group_instance_id="x" * 30_000), 5) == 0


def test_the_first_of_two_static_members_is_fenced_while_it_waits() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3000))
    first = world.ask(joining(group_instance_id="one"))
    second = world.ask(joining(group_instance_id="one"))
    assert first[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    world.pass_time(6000)
    assert second[0].generation_id == 1
