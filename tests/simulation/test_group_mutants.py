"""The simulation finds bugs of groups: each of these is caught within a few seeds."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.simulation.clients.group_workload import ACCIDENTS
from ottla.simulation.plans.group_plan import GroupPlan, Kind
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm import with_groups
from ottla.simulation.runs.run import Failure, simulate
from tests.simulation import group_mutants as mutants
from tests.simulation.plans import busy_plan

SEEDS_MAX = 10


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


CALM = Rates()
KILLS = Rates(kill=1.0)
POWER = Rates(power_loss=2.0)
JUMPS = Rates(clock_jump=2.0)
CLASSIC, CONSUMER = Kind.CLASSIC, Kind.CONSUMER
RESISTING = ("resist", "resist", "crash")  # What happens to members, if not anything.


# Each against one promise, which others may notice first: whoever is fenced too early may lose a
# partition, or find that its group has no members.
@pytest.mark.parametrize(
    ("mutant", "promises", "kind", "rates", "accidents"),
    [
        (mutants.gives_before_revoked, "1", CONSUMER, CALM, ACCIDENTS),
        (mutants.rebalances_without_waiting, "1", CLASSIC, CALM, ACCIDENTS),
        (mutants.fences_too_early, "13", CLASSIC, CALM, ACCIDENTS),
        (mutants.fences_too_early, "134", CONSUMER, CALM, ACCIDENTS),
        (mutants.forgets_the_generation, "13", CLASSIC, KILLS, ACCIDENTS),
        (mutants.answers_before_appended, "12", CLASSIC, KILLS, ACCIDENTS),
        (mutants.serves_while_loading, "123", CLASSIC, KILLS, ACCIDENTS),
        (mutants.loads_all_but_the_end, "2", CONSUMER, KILLS, ACCIDENTS),
        (mutants.takes_stale_generations, "3", CLASSIC, CALM, ACCIDENTS),
        (mutants.takes_stale_epochs, "3", CONSUMER, CALM, ACCIDENTS),
        (mutants.takes_fenced_instances, "13", CLASSIC, CALM, ("succeed", "stall")),
        (mutants.waits_for_everyone, "4", CLASSIC, CALM, RESISTING),
        (mutants.waits_for_every_revocation, "4", CONSUMER, CALM, RESISTING),
        (mutants.keeps_the_dead, "4", CONSUMER, CALM, ACCIDENTS),
        (mutants.expires_too_early, "5", CLASSIC, CALM, ACCIDENTS),
        (mutants.expires_too_early, "5", CONSUMER, CALM, ACCIDENTS),
        (mutants.expires_what_is_read, "5", CLASSIC, JUMPS, ACCIDENTS),
        (mutants.expires_what_is_read, "5", CONSUMER, JUMPS, ACCIDENTS),
    ],
    ids=lambda value: getattr(value, "__name__", getattr(value, "value", "")),
)
def test_a_bug_of_groups_is_found_within_a_few_seeds(
    mutant: mutants.Mutant,
    promises: str,
    kind: Kind,
    rates: Rates,
    accidents: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    monkeypatch.setattr("ottla.simulation.clients.group_workload.ACCIDENTS", accidents)
    with pytest.raises(Failure, match=rf"^seed \d+: G[{promises}]: "):
        run_seeds(kind, rates)


@pytest.mark.parametrize("kind", [CLASSIC, CONSUMER])
def test_without_a_bug_the_same_runs_pass(kind: Kind) -> None:
    for seed, rates in enumerate((CALM, KILLS, POWER, JUMPS)):
        simulate(seed, group_plan(seed, kind, rates))


def run_seeds(kind: Kind, rates: Rates) -> None:
    for seed in range(SEEDS_MAX):
        simulate(seed, group_plan(seed, kind, rates))


def group_plan(seed: int, kind: Kind, rates: Rates) -> Plan:
    """One group and little else."""
    plan = busy_plan(seed, rates, brokers=1, is_synced=bool(rates.power_loss))
    plan = replace(plan, producers=(), consumers=0)
    members = 1 + seed % 3
    group = GroupPlan(
        name=kind.value,
        kind=kind,
        members=members,
        static=members // 3,
        session_ms=1_500,
        rebalance_ms=2_000,
        heartbeat_ms=200,
        commit_ms=100,
        is_cooperative=seed % 4 == 3,
        calm_seconds=1.0,
    )
    return replace(with_groups(plan, (group,)), rates=rates, seconds=8.0)
