import pytest

from ottla.model.types import NodeId, TopicPartition
from ottla.simulation.cluster_run import ClusterWorld, simulate_cluster
from ottla.simulation.replica_checks import check_alike, keepers, unhealthy
from ottla.simulation.running import Failure
from tests.unit.simulation.small_cluster import small_cluster

PLACE = TopicPartition("topic-0", 0)


def test_a_cluster_at_the_end_of_a_run_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[ClusterWorld] = []
    audit = ClusterWorld._audit

    async def look(world: ClusterWorld) -> None:
        await audit(world)
        looked.append(world)
        assert unhealthy(world.nodes) == []
        assert check_alike(world.nodes) == []
        assert keepers(world.nodes) == [{1, 2, 3}] * 2
        world.nodes.machines[NodeId(2)].kill(0)
        assert unhealthy(world.nodes) == ["node 2 does not serve"]
        assert len(check_alike(world.nodes)) == 2

    monkeypatch.setattr(ClusterWorld, "_audit", look)
    simulate_cluster(5, small_cluster(5))
    assert looked


def test_one_byte_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = ClusterWorld._audit

    async def spoil(world: ClusterWorld) -> None:
        (_, broker), *_ = world.nodes.serving()
        leader = broker.image.topics_by_name[PLACE.topic].partitions[PLACE.partition].leader
        disk = world.nodes.machines[NodeId(leader % 3 + 1)].disk
        disk.flip_bit("/data/log/topic-0-0/00000000000000000000.log", 70)
        await audit(world)

    monkeypatch.setattr(ClusterWorld, "_audit", spoil)
    with pytest.raises(Failure, match="not alike"):
        simulate_cluster(5, small_cluster(5))
