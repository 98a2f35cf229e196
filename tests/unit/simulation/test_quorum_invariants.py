"""Each promise of the quorum is broken on purpose, and the break is named."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.model.types import NodeId
from ottla.quorum.leadership import Leader
from ottla.simulation.cluster_run import ClusterWorld, simulate_cluster
from ottla.simulation.running import Failure
from tests.unit.simulation.small_cluster import small_cluster

Harm = Callable[[ClusterWorld], None]


def leader_of(world: ClusterWorld) -> NodeId:
    return next(n for n, b in world.nodes.serving() if isinstance(b.quorum.quorum.role, Leader))


def second_leader(world: ClusterWorld) -> None:
    world.quorum_invariants.leaders[
        world.nodes.machines[leader_of(world)].broker.quorum.leader_epoch  # type: ignore[union-attr]
    ] = NodeId(9)
    touch(world)


def second_vote(world: ClusterWorld) -> None:
    node = leader_of(world)
    seen = world.quorum_invariants._seen[NodeId(node % 3 + 1)]
    quorum = world.nodes.machines[NodeId(node % 3 + 1)].broker.quorum.quorum  # type: ignore[union-attr]
    seen.settled_vote = NodeId(1)
    quorum.state = replace(quorum.state, voted=NodeId(2))


def epoch_back(world: ClusterWorld) -> None:
    quorum = world.nodes.machines[leader_of(world)].broker.quorum.quorum  # type: ignore[union-attr]
    quorum.state = replace(quorum.state, epoch=0)


def watermark_back(world: ClusterWorld) -> None:
    quorum = world.nodes.machines[leader_of(world)].broker.quorum.quorum  # type: ignore[union-attr]
    quorum.high_watermark = 1


def other_record(world: ClusterWorld) -> None:
    invariants = world.quorum_invariants
    invariants._marks = dict.fromkeys(invariants._marks, 7)
    world.quorum_invariants._seen[leader_of(world)].chain.links.clear()
    touch(world)


def lost_commit(world: ClusterWorld) -> None:
    invariants = world.quorum_invariants
    invariants.committed[invariants.committed_end - 1] = 7
    invariants._seen[leader_of(world)].led_epoch = -1
    touch(world)


def touch(world: ClusterWorld) -> None:
    for seen in world.quorum_invariants._seen.values():
        seen.mark = ()


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (second_leader, "R1"),
        (second_vote, "R2"),
        (other_record, "R4"),
        (lost_commit, "R5"),
        (watermark_back, "R7"),
        (epoch_back, "R8"),
    ],
)
def test_a_broken_promise_is_named(
    harm: Harm, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    prepare = ClusterWorld._prepare

    async def prepare_and_harm(world: ClusterWorld) -> None:
        await prepare(world)
        harm(world)

    monkeypatch.setattr(ClusterWorld, "_prepare", prepare_and_harm)
    with pytest.raises(Failure, match=named):
        simulate_cluster(5, small_cluster(5))
