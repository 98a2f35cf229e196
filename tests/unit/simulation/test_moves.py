import pytest

from ottla.simulation.cluster_plan import ClusterRates
from ottla.simulation.cluster_run import ClusterWorld, simulate_cluster
from tests.unit.simulation.small_cluster import small_cluster


@pytest.mark.parametrize("kind", ["reassignment", "election"])
def test_partitions_move_and_nothing_is_lost(kind: str) -> None:
    worlds: list[ClusterWorld] = []
    plan = small_cluster(4, ClusterRates(**{kind: 4.0}))
    report = simulate_cluster(4, plan, arrange=worlds.append)
    assert report.faults[kind] > 2
    assert report.acknowledged == report.sent
    if kind == "reassignment":
        epochs = [one.leaders for one in worlds[0].replica_invariants._known.values()]
        assert max(map(len, epochs)) > 1, "some partition has had another leader"


def test_voters_leave_and_come_back_and_nothing_is_lost() -> None:
    voters: set[frozenset[int]] = set()

    def arrange(world: ClusterWorld) -> None:
        check = world.quorum_invariants.check

        def checked() -> None:
            check()
            for _, broker in world.nodes.serving():
                voters.add(frozenset(broker.quorum.quorum.voters.by_id))

        world.quorum_invariants.check = checked  # type: ignore[method-assign]

    plan = small_cluster(4, ClusterRates(voter_change=3.0))
    report = simulate_cluster(4, plan, arrange=arrange)
    assert report.faults["voter_change"] > 2
    assert report.acknowledged == report.sent
    assert {len(each) for each in voters} == {2, 3}
