"""The pure quorum under faults: nothing committed is ever lost, and every bug of these is found."""

from collections.abc import Iterator

import pytest

from tests.simulation import quorum_mutants, worlds
from tests.simulation.quorum_rules import Violation
from tests.simulation.quorum_world import Faults, World
from tests.simulation.worlds import play_for

CPU_S = 8  # For stories of every kind; `python -m tests.simulation.worlds` plays thousands.


@pytest.mark.parametrize("seed", range(12))
def test_three_voters_lose_nothing_and_recover(seed: int) -> None:
    World(seed, size=3).story()


@pytest.mark.parametrize("seed", range(6))
def test_five_voters_lose_nothing_and_recover(seed: int) -> None:
    World(seed, size=5).story()


def test_voter_that_knows_the_leader_by_id_alone_finds_its_address() -> None:
    World(116, faults=Faults(change_every_ms=600, crash_every_ms=600)).story(6_000)


def test_leader_that_learns_late_of_its_election_needs_no_later_entries() -> None:
    World.swarm(100704).story()


def test_stories_of_every_kind_hold_all_rules() -> None:
    assert play_for(worlds.quorum, CPU_S, at_least=30) >= 30


@pytest.mark.parametrize("mutant", quorum_mutants.STORIES_MAX, ids=lambda mutant: mutant.__name__)
def test_a_bug_is_found_within_a_few_stories(
    mutant: quorum_mutants.Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    stories_max = quorum_mutants.STORIES_MAX[mutant]
    for world in stories(stories_max):
        try:
            world.play(8_000)
        except Exception:  # noqa: BLE001  A bug may show as anything.
            return
    pytest.fail(f"{mutant.__name__} survives {stories_max} stories")


@pytest.mark.parametrize(("rule", "mutant"), quorum_mutants.OF_RULE.items())
def test_each_rule_is_checked(
    rule: str, mutant: quorum_mutants.Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant breaks it, and the check of this very rule is the one that sees it."""
    mutant(monkeypatch)
    for world in stories(60):
        try:
            world.play(8_000)
        except Violation as violation:
            if violation.rule == rule:
                return
        except Exception:  # noqa: BLE001  Other harm that the mutant does.
            pass
    pytest.fail(f"{mutant.__name__} does not break {rule} in 60 stories")


def stories(count: int) -> Iterator[World]:
    """Hard ones: crashes of three and five voters, elections, lost disks; and of every kind."""
    crashes = Faults(
        crash_every_ms=400, partition_every_ms=600, change_every_ms=1000, snapshot_every_ms=2000
    )
    elections = Faults(
        crash_every_ms=300, partition_every_ms=250, delay_ms_max=100, propose_every_ms=10,
        batch_max=1, change_every_ms=0, snapshot_every_ms=0,
    )  # fmt: skip
    disks = Faults(
        crash_every_ms=2000, partition_every_ms=600, wipe_every_ms=1500, change_every_ms=0
    )
    for number in range(count):
        seed, kind = divmod(number, 5)
        match kind:
            case 0 | 1:
                yield World(seed, size=3 + 2 * kind, faults=crashes)
            case 2:
                yield World(seed, size=3, spare=0, faults=elections)
            case 3:
                yield World(seed, size=3, faults=disks)
            case _:
                yield World.swarm(seed)


def test_without_faults_a_leader_is_found_soon_and_stays() -> None:
    world = World(1, size=3, faults=Faults.none())
    for node in world.nodes.values():
        node.start()
    world.run(400)
    assert world.rules.elections == 1
    world.run(20_000)
    assert world.rules.elections == 1


def test_a_dead_leader_is_replaced_well_within_a_second() -> None:
    for seed in range(10):
        world = World(seed, size=3, faults=Faults.none())
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
    world = World(3, size=3, faults=Faults.none())
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
    assert worlds[0].rules.leaders == worlds[1].rules.leaders
