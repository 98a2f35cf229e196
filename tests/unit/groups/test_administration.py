"""Groups described, listed and deleted as Kafka does."""

import pytest

from ottla.groups.administration import ListGroups
from ottla.groups.coordinator import DeleteGroup, DescribeGroup
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import list_groups
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


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ([], [], {GROUP, "simple"}),
        (["stable"], [], {GROUP}),
        (["Empty"], ["classic"], {"simple"}),
        (["Empty", "Stable"], ["Classic"], {GROUP, "simple"}),
        ([], ["consumer"], set()),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: list[str], types: list[str], found: set[str]
) -> None:
    world = World()
    stable(world)
    commit = committing(1)
    commit.group_id = "simple"
    world.ask(commit)
    listed = world.reply(ListGroups.of(list_groups.Request(states, types)))
    assert {group.group_id for group in listed} == found


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


def test_the_lists_of_a_request_are_read_once_for_all_groups() -> None:
    request = list_groups.Request([" Stable "] * 1000, ["CLASSIC"] * 1000)
    wanted = ListGroups.of(request)
    request.states_filter = request.types_filter = []
    assert (wanted.states, wanted.types) == ({"stable"}, {"classic"})
    assert wanted.has(list_groups.ListedGroup(GROUP, "consumer", "Stable", "classic"))
    assert not wanted.has(list_groups.ListedGroup(GROUP, "consumer", "Empty", "classic"))
