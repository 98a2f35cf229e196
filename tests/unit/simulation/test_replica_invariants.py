"""Each promise of replication is broken on purpose, and the break is named."""

from collections.abc import Callable

import pytest

from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.model.types import NodeId
from ottla.simulation.cluster_run import ClusterWorld, simulate_cluster
from ottla.simulation.replica_invariants import Known
from ottla.simulation.running import Failure
from tests.unit.simulation.small_cluster import small_cluster

Harm = Callable[[ClusterWorld], None]


def known(world: ClusterWorld) -> Known:
    """Of a partition that has something committed."""
    world.replica_invariants.check()
    return max(world.replica_invariants._known.values(), key=lambda one: one.committed_end)


def led(world: ClusterWorld) -> ReplicatedPartition:
    name = known(world).name
    return next(
        one
        for _, broker in world.nodes.serving()
        for one in broker.partitions.all()
        if one.name == name and isinstance(one, ReplicatedPartition) and one.leader is not None
    )


def watermark_past_the_end(world: ClusterWorld) -> None:
    led(world).high_watermark += 1000


def watermark_back(world: ClusterWorld) -> None:
    led(world).high_watermark -= 1


def two_leaders(world: ClusterWorld) -> None:
    known(world).leaders[led(world).leader_epoch] = NodeId(9)


def follower_without_records(world: ClusterWorld) -> None:
    leader = led(world)
    follower = next(
        one
        for _, broker in world.nodes.serving()
        for one in broker.partitions.all()
        if one.name == leader.name and one is not leader
    )
    follower.log.truncate_to(0)
    follower.high_watermark = 0


def other_bytes(world: ClusterWorld) -> None:
    one = known(world)
    one.marks = dict.fromkeys(one.marks, 7)
    for replica in one.replicas.values():
        replica.chain.links.clear()
        replica.tip = (-1, -1)


def twice(world: ClusterWorld) -> None:
    """As if the last batch were the first one, sent once more."""
    chain = known(world).replicas[NodeId(1)].chain
    assert len(chain.links) > 1
    chain.links[-1] = chain.links[-1]._replace(batch=chain.links[0].batch)
    known(world).replicas[NodeId(1)].tip = (-1, -1)
    chain.follow = lambda *_: []  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (watermark_past_the_end, "I1"),
        (watermark_back, "I1"),
        (follower_without_records, "I2"),
        (two_leaders, "I3"),
        (other_bytes, "I4"),
        (twice, "I7"),
    ],
)
def test_a_broken_promise_is_named(
    harm: Harm, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    audit = ClusterWorld._audit

    async def harm_and_look(world: ClusterWorld) -> None:
        harm(world)
        world.replica_invariants.check()
        await audit(world)

    monkeypatch.setattr(ClusterWorld, "_audit", harm_and_look)
    with pytest.raises(Failure, match=named):
        simulate_cluster(5, small_cluster(5))
