"""Classic groups described and deleted as Kafka does."""

from ottla.groups.coordinator import DeleteGroup, DescribeGroup
from ottla.model.errors import ErrorCode
from tests.unit.groups.driving import (
    GROUP,
    World,
    committed,
    committing,
    joining,
    leaving,
    new_id,
    stable,
    subscription,
)


def test_a_stable_group_is_described_with_its_assignment() -> None:
    world = World()
    _, (leader,) = stable(world)
    described = world.reply(DescribeGroup(GROUP))
    assert (described.group_state, described.protocol_type) == ("Stable", "consumer")
    assert described.protocol_data == "range"
    (member,) = described.members
    assert (member.member_id, member.client_id, member.client_host) == (leader, "app", "/10.0.0.1")
    assert member.member_metadata == subscription("t")
    assert member.member_assignment == leader.encode()


def test_a_group_that_rebalances_is_described_with_its_last_assignment() -> None:
    world = World()
    stable(world)
    world.ask(joining(new_id(world)))
    described = world.reply(DescribeGroup(GROUP))
    assert described.group_state == "PreparingRebalance"
    assert described.protocol_data == ""
    assert {member.member_assignment for member in described.members} == {b"", b"app-1"}
    assert {member.member_metadata for member in described.members} == {b""}


def test_a_group_that_nobody_knows_is_dead_or_not_found() -> None:
    world = World()
    old = world.reply(DescribeGroup("x"), version=5)
    assert (old.error_code, old.group_state) == (0, "Dead")
    new = world.reply(DescribeGroup("x"), version=6)
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message == "Group x not found."


def test_only_an_empty_group_is_deleted_with_its_offsets() -> None:
    world = World()
    generation, (leader,) = stable(world)
    world.ask(committing(5, generation, leader))
    assert world.code(DeleteGroup(GROUP)) == ErrorCode.NON_EMPTY_GROUP
    world.ask(leaving(leader))
    assert world.code(DeleteGroup(GROUP)) == 0
    assert world.code(DeleteGroup(GROUP)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(world) == -1
    world.reload()
    assert committed(world) == -1
    assert world.code(DeleteGroup(GROUP)) == ErrorCode.GROUP_ID_NOT_FOUND
