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
