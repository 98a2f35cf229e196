import pytest

from ottla.model.types import NodeId, TopicPartition
from ottla.simulation.invariants.replica_checks import check_alike, unhealthy
from ottla.simulation.runs.run import World, simulate
from ottla.simulation.runs.running import Failure
from tests.unit.simulation.small import small_cluster

PLACE = TopicPartition("topic-0", 0)


def test_a_cluster_at_the_end_of_a_run_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[World] = []
    audit = World._audit

    async def look(world: World) -> None:
        await audit(world)
        looked.append(world)
        assert unhealthy(world.nodes) == []
        assert check_alike(world.nodes) == []
        assert world.metadata.keepers() == [{1, 2, 3}] * 2
        world.nodes.machines[NodeId(2)].kill(0)
        assert unhealthy(world.nodes) == ["node 2 does not serve"]
        assert len(check_alike(world.nodes)) == 2

    monkeypatch.setattr(World, "_audit", look)
    simulate(5, small_cluster(5))
    assert looked


def test_one_byte_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = World._audit

    async def spoil(world: World) -> None:
        (_, broker), *_ = world.nodes.serving()
        leader = broker.image.topics_by_name[PLACE.topic].partitions[PLACE.partition].leader
        disk = world.nodes.machines[NodeId(leader % 3 + 1)].disk
        disk.flip_bit("/data-0/topic-0-0/00000000000000000000.log", 70)
        await audit(world)

    monkeypatch.setattr(World, "_audit", spoil)
    with pytest.raises(Failure, match="not alike"):
        simulate(5, small_cluster(5))
