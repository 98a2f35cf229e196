"""The pure quorum under faults: nothing committed is ever lost, and every bug of these is found."""

import pytest

from tests.simulation import quorum_mutants
from tests.simulation.quorum_world import Faults, World

SEEDS_MAX = 30  # Within which each bug has to show.


@pytest.mark.parametrize("seed", range(12))
def test_three_voters_lose_nothing_and_recover(seed: int) -> None:
    World(seed, size=3).story()


@pytest.mark.parametrize("seed", range(6))
def test_five_voters_lose_nothing_and_recover(seed: int) -> None:
    World(seed, size=5).story()


@pytest.mark.parametrize("mutant", quorum_mutants.ALL, ids=lambda mutant: mutant.__name__)
def test_a_bug_is_found_within_a_few_seeds(
    mutant: quorum_mutants.Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    for seed in range(SEEDS_MAX):
        if not _holds(seed, size=3) or not _holds(seed, size=5):
            return
    pytest.fail(f"{mutant.__name__} survives {SEEDS_MAX} seeds")


def _holds(seed: int, size: int) -> bool:
    faults = Faults(
        crash_every_ms=400, partition_every_ms=600, change_every_ms=1000, snapshot_every_ms=2000
    )
    try:
        World(seed, size=size, faults=faults).play(8_000)
    except Exception:  # noqa: BLE001  A bug may show as anything.
        return False
    return True


def test_without_faults_a_leader_is_found_soon_and_stays() -> None:
    world = World(1, size=3, faults=Faults(0, 0, 0, 5, 0, 0, 0, 0))
    for node in world.nodes.values():
        node.start()
    world.run(400)
    assert world.elections == 1
    world.run(20_000)
    assert world.elections == 1


def test_a_dead_leader_is_replaced_well_within_a_second() -> None:
    for seed in range(10):
        world = World(seed, size=3, faults=Faults(0, 0, 0, 5, 0, 0, 0, 0))
        for node in world.nodes.values():
            node.start()
        world.run(1000)
        leader = next(n for n in world.nodes.values() if n.quorum.is_leader)
        leader.crash()
        for exchange in world.under_way:  # Its process is gone, and so are its connections.
            if exchange.target == leader.key.id:
                exchange.fail(is_closed=True)
        world.run(1700)
        living = [n for n in world.nodes.values() if n.machine is not None]
        assert any(n.quorum.is_leader for n in living), f"seed {seed}"


def test_a_false_hint_costs_nothing_but_a_check() -> None:
    world = World(3, size=3, faults=Faults(0, 0, 0, 5, 0, 0, 0, 0))
    for node in world.nodes.values():
        node.start()
    world.run(1000)
    leader = next(n for n in world.nodes.values() if n.quorum.is_leader)
    epoch = leader.quorum.state.epoch
    for _ in range(20):
        for exchange in world.under_way:
            if exchange.target == leader.key.id:
                exchange.fail(is_closed=True)
        leader.propose(7)
        world.run(world.now + 300)
    assert leader.quorum.is_leader
    assert leader.quorum.state.epoch == epoch
    assert leader.quorum.high_watermark == leader.log.end_offset


def test_the_same_seed_is_the_same_story() -> None:
    worlds = [World(9, size=3) for _ in range(2)]
    for world in worlds:
        world.story(4_000)
    assert worlds[0].committed == worlds[1].committed
    assert worlds[0].leaders == worlds[1].leaders
