"""Each promise of the quorum is broken on purpose, and the break is named."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.model.types import NodeId
from ottla.quorum.leadership import Leader
from ottla.simulation.runs.run import World, simulate
from ottla.simulation.runs.running import Failure
from tests.unit.simulation.small import small_cluster

Harm = Callable[[World], None]


def leader_of(world: World) -> NodeId:
    return next(n for n, b in world.nodes.serving() if isinstance(b.quorum.quorum.role, Leader))


def second_leader(world: World) -> None:
    world.quorum_invariants.leaders[
        world.nodes.machines[leader_of(world)].broker.quorum.leader_epoch  # type: ignore[union-attr]
    ] = NodeId(9)
    touch(world)


def second_vote(world: World) -> None:
    node = leader_of(world)
    seen = world.quorum_invariants._seen[NodeId(node % 3 + 1)]
    quorum = world.nodes.machines[NodeId(node % 3 + 1)].broker.quorum.quorum  # type: ignore[union-attr]
    seen.settled_vote = NodeId(1)
    quorum.state = replace(quorum.state, voted=NodeId(2))


def epoch_back(world: World) -> None:
    quorum = world.nodes.machines[leader_of(world)].broker.quorum.quorum  # type: ignore[union-attr]
    quorum.state = replace(quorum.state, epoch=0)


def watermark_back(world: World) -> None:
    quorum = world.nodes.machines[leader_of(world)].broker.quorum.quorum  # type: ignore[union-attr]
    quorum.high_watermark = 1


def other_record(world: World) -> None:
    invariants = world.quorum_invariants
    invariants._marks = dict.fromkeys(invariants._marks, 7)
    world.quorum_invariants._seen[leader_of(world)].chain.links.clear()
    touch(world)


def lost_commit(world: World) -> None:
    invariants = world.quorum_invariants
    invariants.committed[invariants.committed_end - 1] = 7
    invariants._seen[leader_of(world)].led_epoch = -1
    touch(world)


def early_voters(world: World) -> None:
    node = leader_of(world)
    world.quorum_invariants._seen[node].voters = frozenset({NodeId(9)})
    quorum = world.nodes.machines[node].broker.quorum.quorum  # type: ignore[union-attr]
    quorum.role.epoch_start_offset = quorum.high_watermark
    touch(world)


def touch(world: World) -> None:
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
        (early_voters, "R11"),
    ],
)
def test_a_broken_promise_is_named(
    harm: Harm, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    prepare = World._prepare

    async def prepare_and_harm(world: World) -> None:
        await prepare(world)
        harm(world)
        world.quorum_invariants.check()

    monkeypatch.setattr(World, "_prepare", prepare_and_harm)
    with pytest.raises(Failure, match=named):
        simulate(5, small_cluster(5))
