"""The simulation finds bugs: each of these, switched on, is caught within a few seeds."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.runs.run import Failure, simulate
from tests.simulation import mutants
from tests.simulation.plans import busy_plan

SEEDS_MAX = 20


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


KILLS = Rates(kill=3.0)
RESETS = Rates(reset=10.0)
POWER = Rates(power_loss=6.0)


@pytest.mark.parametrize(
    ("mutant", "rates", "is_synced"),
    [
        (mutants.replies_before_flush, KILLS, False),
        (mutants.forgets_duplicates, RESETS, False),
        (mutants.recovers_too_little, KILLS, False),
        (mutants.recovers_nothing, KILLS, False),
        (mutants.syncs_in_name_only, POWER, True),
        (mutants.shows_what_is_not_synced, POWER, True),
        (mutants.forgets_producers_on_restart, KILLS, True),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_bug_is_found_within_a_few_seeds(
    mutant: mutants.Mutant, rates: Rates, is_synced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    for seed in range(SEEDS_MAX):
        try:
            simulate(seed, small_plan(seed, rates, is_synced))
        except Failure:
            return
    pytest.fail(f"{mutant.__name__} survives {SEEDS_MAX} seeds")


def test_without_a_bug_the_same_runs_pass() -> None:
    for seed, rates in enumerate((KILLS, RESETS)):
        simulate(seed, small_plan(seed, rates, is_synced=False))
    simulate(2, small_plan(2, POWER, is_synced=True))


def small_plan(seed: int, rates: Rates, is_synced: bool) -> Plan:
    return replace(
        busy_plan(seed, rates, brokers=1, is_synced=is_synced),
        seconds=4.0,
        consumers=4 if is_synced else 1,  # Someone has to read in the moment before a sync.
        records_per_second=200.0 if is_synced else 60.0,
    )
