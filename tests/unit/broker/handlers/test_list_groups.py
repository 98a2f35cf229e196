"""ListGroups through a broker: of all its machines, filtered by state and type."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import list_groups as wire
from tests.unit.broker.grouping import QUICK, commit, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP


@pytest.mark.parametrize("version", range(6))
def test_groups_of_all_partitions_are_listed(version: int) -> None:
    with serving(**QUICK) as world:
        client, _, _ = stable(world)
        world.topic("t")
        for number in range(8):
            assert commit(world, 1, group=f"g{number}") == 0
        answer = client.ask(wire.Request(), version)
        assert {g.group_id for g in answer.groups} == {GROUP, *(f"g{n}" for n in range(8))}
        if version >= 4:
            stable_ones = client.ask(wire.Request(["Stable"]), version).groups
            assert [(g.group_id, g.group_state) for g in stable_ones] == [(GROUP, "Stable")]
        if version >= 5:
            assert client.ask(wire.Request([], ["consumer"]), version).groups == []


def test_nothing_is_listed_before_there_are_groups() -> None:
    with serving(**QUICK) as world:
        answer = world.client().ask(wire.Request())
        assert (answer.error_code, answer.groups) == (0, [])


def test_a_list_is_not_given_before_all_is_loaded() -> None:
    with serving(**QUICK) as world:
        stable(world)
        world.stop()
        world.start()
        world.workers.is_holding = True  # Before the loading, which the start only began.
        answer = world.client().ask(wire.Request())
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.workers.is_holding = False
        world.until(lambda: world.client().ask(wire.Request()).error_code == 0)
