"""Groups of all kinds listed as Kafka does."""

import pytest

from ottla.groups.administration import ListGroups
from ottla.protocol.messages import list_groups
from tests.unit.groups.driving import (
    GROUP,
    World,
    committing,
    stable,
)


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


def test_the_lists_of_a_request_are_read_once_for_all_groups() -> None:
    request = list_groups.Request([" Stable "] * 1000, ["CLASSIC"] * 1000)
    wanted = ListGroups.of(request)
    request.states_filter = request.types_filter = []
    assert (wanted.states, wanted.types) == ({"stable"}, {"classic"})
    assert wanted.has(list_groups.ListedGroup(GROUP, "consumer", "Stable", "classic"))
    assert not wanted.has(list_groups.ListedGroup(GROUP, "consumer", "Empty", "classic"))
