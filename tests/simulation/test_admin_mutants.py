"""Changes of what is safe, and bit rot, find bugs, each within a stated number of seeds."""

import logging
from collections.abc import Callable, Iterator

import pytest

from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.runs.run import Failure, simulate
from tests.simulation import admin_mutants as mutants
from tests.simulation.plans import (
    lonely_plan,
    resized_plan,
    rotting_plan,
    shifting_group_plan,
    shifting_plan,
    snapshot_plan,
    stopping_plan,
)

MIN_ISR = Rates(min_isr_change=3.0, kill=1.5, power_loss=0.3)
BELOW_MIN_ISR = Rates(min_isr_change=3.0, kill=1.5)
RESIZED = Rates(reassignment=3.0)
STOPS = Rates(power_loss=1.5, clean_restart=2.0)
ROT = Rates(bit_rot=3.0, reassignment=3.0)
FEATURES = Rates(feature_change=3.0, kill=1.0)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("mutant", "plan_of", "rates", "seeds_max"),
    [
        (mutants.keeps_the_elr_under_another_minimum, shifting_plan, MIN_ISR, 20),
        (
            mutants.drops_the_coordinator_with_a_refused_write,
            shifting_group_plan,
            BELOW_MIN_ISR,
            5,
        ),
        (mutants.hands_over_to_silent_brokers, stopping_plan, STOPS, 10),
        (mutants.starts_from_the_checkpoint, resized_plan, RESIZED, 2),
        (mutants.replicates_damaged_batches, rotting_plan, ROT, 6),
        (mutants.believes_damaged_batches, rotting_plan, ROT, 2),
        (mutants.raises_lowered_features_at_each_start, lonely_plan, FEATURES, 5),
        (mutants.forgets_features_in_snapshots, snapshot_plan, FEATURES, 5),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_bug_is_found_within_a_few_seeds(
    mutant: Callable[[pytest.MonkeyPatch], None],
    plan_of: Callable[[int, Rates], Plan],
    rates: Rates,
    seeds_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    for seed in range(seeds_max):
        try:
            simulate(seed, plan_of(seed, rates))
        except Failure:
            return
    pytest.fail(f"{mutant.__name__} survives {seeds_max} seeds")


def test_without_a_bug_the_same_runs_pass() -> None:
    simulate(1, shifting_plan(1, MIN_ISR))
    simulate(1, shifting_group_plan(1, BELOW_MIN_ISR))
    simulate(0, stopping_plan(0, STOPS))
    simulate(1, resized_plan(1, RESIZED))
    simulate(1, rotting_plan(1, ROT))
    simulate(1, lonely_plan(1, FEATURES))
    simulate(1, snapshot_plan(1, FEATURES))
