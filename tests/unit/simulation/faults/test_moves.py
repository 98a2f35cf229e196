from dataclasses import replace

import pytest

from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import small_cluster


@pytest.mark.parametrize("kind", ["reassignment", "election"])
def test_partitions_move_and_nothing_is_lost(kind: str) -> None:
    worlds: list[World] = []
    plan = small_cluster(4, Rates(**{kind: 4.0}))
    report = simulate(4, plan, arrange=worlds.append)
    assert report.faults[kind] > 2
    assert report.acknowledged == report.sent
    if kind == "reassignment":
        epochs = [one.leaders for one in worlds[0].replica_invariants._known.values()]
        assert max(map(len, epochs)) > 1, "some partition has had another leader"


def test_a_partition_has_one_to_three_replicas_in_turn() -> None:
    counts: set[int] = set()

    def arrange(world: World) -> None:
        look = world.metadata.look

        def looked() -> None:
            look()
            counts.update(len(state.replicas) for state in world.metadata.committed.values())

        world.metadata.look = looked  # type: ignore[method-assign]

    plan = replace(small_cluster(4, Rates(reassignment=4.0)), replicas_min=1)
    report = simulate(4, plan, arrange=arrange)
    assert report.acknowledged == report.sent
    assert counts == {1, 2, 3}


def test_voters_leave_and_come_back_and_nothing_is_lost() -> None:
    voters: set[frozenset[int]] = set()

    def arrange(world: World) -> None:
        check = world.quorum_invariants.check

        def checked() -> None:
            check()
            for _, broker in world.nodes.serving():
                voters.add(frozenset(broker.quorum.quorum.voters.by_id))

        world.quorum_invariants.check = checked  # type: ignore[method-assign]

    plan = small_cluster(4, Rates(voter_change=3.0))
    report = simulate(4, plan, arrange=arrange)
    assert report.faults["voter_change"] > 2
    assert report.acknowledged == report.sent
    assert {len(each) for each in voters} >= {2, 3}
