from dataclasses import replace

import pytest

from ottla.metadata.image.features import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_MAX,
)
from ottla.simulation.faults.features import Levels
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import small_cluster, small_plan


def levels_seen(plan: Plan, kind: str) -> dict[str, set[int]]:
    """The levels that committed metadata had in a run, by feature."""
    names = (METADATA_VERSION, ELR_VERSION, GROUP_VERSION)
    levels: dict[str, set[int]] = {name: set() for name in names}

    def arrange(world: World) -> None:
        look = world.metadata.look

        def looked() -> None:
            look()
            for _, broker in world.nodes.serving():
                for name, seen in levels.items():
                    seen.add(broker.image.features.get(name, 0))

        world.metadata.look = looked  # type: ignore[method-assign]

    report = simulate(4, plan, arrange=arrange)
    assert report.faults[kind] > 2
    assert report.acknowledged == report.sent
    return levels


def test_the_elr_is_switched_off_and_on() -> None:
    seen = levels_seen(small_cluster(4, Rates(elr_change=4.0)), "elr_change")
    assert seen[ELR_VERSION] == {0, 1}


def test_an_old_cluster_is_raised_and_lowered_between_equivalent_versions() -> None:
    plan = replace(small_cluster(4, Rates(feature_change=8.0)), metadata_version=20)
    seen = levels_seen(plan, "feature_change")
    assert min(seen[METADATA_VERSION] - {0}) == 20
    assert len(seen[METADATA_VERSION]) > 2
    assert seen[GROUP_VERSION] == {0, 1}
    assert seen[ELR_VERSION] == {0}, "too old for it at first, and nobody switches it on"


def test_the_groups_of_a_single_node_are_switched_off_and_on() -> None:
    seen = levels_seen(small_plan(4, Rates(feature_change=8.0)), "feature_change")
    assert seen[GROUP_VERSION] == {0, 1}
    assert max(seen[METADATA_VERSION]) == METADATA_VERSION_MAX


@pytest.mark.parametrize(("is_delayed", "possible"), [(False, {2}), (True, {1, 2})])
def test_a_level_in_doubt_is_possible_until_a_later_one_is_confirmed(
    is_delayed: bool, possible: set[int]
) -> None:
    levels = Levels(0, is_delayed=is_delayed)
    levels.doubt(1)
    assert levels.possible == {0, 1}
    levels.confirm(2)
    assert levels.possible == possible
