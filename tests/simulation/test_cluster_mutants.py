"""The simulation of a cluster finds bugs: each of these within a stated number of seeds."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ottla.simulation.faults.nemesis import Nemesis
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.runs.run import Failure, simulate
from tests.simulation import cluster_mutants as mutants
from tests.simulation.plans import busy_plan, lagging_group_plan, lagging_plan

KILLS = Rates(kill=1.5)
CUTS = Rates(partition=0.7, one_way=0.3, kill=0.3)
POWER = Rates(power_loss=3.0)
BLACKOUT = Rates(blackout=0.5)
DELAYS = Rates(partition=1.0, one_way=0.5, pause=0.5, slow_link=1.0)
VOTERS = Rates(kill=2.0, voter_change=10.0)
LAGGING_SEEDS_MAX = 20
DELETION = Rates(record_deletion=3.0, blackout=0.5)
OUTAGES = Rates(power_loss=0.8, partition=0.7, kill=0.5, reset=1.0)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("mutant", "rates", "seeds_max"),
    [
        (mutants.acks_before_it_replicates, CUTS, 10),
        (mutants.commits_alone, CUTS, 10),
        (mutants.keeps_deleted_records, DELETION, 3),
        (mutants.truncates_too_much, KILLS, 10),
        (mutants.lets_anyone_join_the_isr, KILLS, 10),
        (mutants.forgets_producers_at_failover, KILLS, 10),
        (mutants.votes_twice, KILLS, 10),
        (mutants.does_not_write_votes, KILLS, 10),
        (mutants.commits_metadata_alone, KILLS, 10),
        (mutants.does_not_sync_the_metadata_log, BLACKOUT, 10),
        (mutants.syncs_in_name_only, BLACKOUT, 10),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_bug_is_found_within_a_few_seeds(
    mutant: mutants.Mutant,
    rates: Rates,
    seeds_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    for seed in range(seeds_max):
        try:
            simulate(seed, busy_plan(seed, rates))
        except Failure:
            return
    pytest.fail(f"{mutant.__name__} survives {seeds_max} seeds")


# Each under the name of the invariant that sees its cause, where there is one.
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("mutant", "plan_of", "rates", "named"),
    [
        (mutants.forgets_to_truncate, lagging_plan, CUTS, "I"),
        (mutants.does_not_notice_a_power_loss, lagging_plan, POWER, "I"),
        (mutants.serves_what_is_not_committed, lagging_plan, KILLS, "I8"),
        (mutants.sees_divergence_by_offset_alone, lagging_plan, DELAYS, "I"),
        (mutants.answers_before_its_log_is_committed, lagging_group_plan, KILLS, "G6"),
        (mutants.changes_voters_too_early, lagging_plan, VOTERS, "R11"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_bug_is_found_where_followers_lag(
    mutant: mutants.Mutant,
    plan_of: Callable[[int, Rates], Plan],
    rates: Rates,
    named: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    found = []
    for seed in range(LAGGING_SEEDS_MAX):
        try:
            simulate(seed, plan_of(seed, rates))
        except Failure as failure:
            found.append(str(failure.reason))
            if found[-1].startswith(named):
                return
    pytest.fail(f"{mutant.__name__} survives {LAGGING_SEEDS_MAX} seeds: {found}")


def test_without_a_bug_the_same_runs_pass() -> None:
    for seed, rates in enumerate((KILLS, CUTS, POWER, BLACKOUT, DELETION, DELAYS, VOTERS)):
        simulate(seed, busy_plan(seed, rates))
        simulate(seed, lagging_plan(seed, rates))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_forgotten", [False, True])
def test_what_was_deleted_does_not_come_back(
    is_forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower that all lost power with must not lead from the old beginning."""
    found = 0
    if is_forgotten:
        mutants.forgets_where_logs_begin(monkeypatch)
    for seed in range(6, 12) if is_forgotten else range(2):
        plan = busy_plan(seed, Rates(record_deletion=2.0, blackout=0.7))
        try:
            simulate(seed, replace(plan, partitions=3, records_per_second=20.0))
        except Failure:
            found += 1
    assert (found > 0) is is_forgotten


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_left", [False, True])
def test_the_last_replica_that_is_whole_stays_eligible(
    is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two brokers that lost power restart beside one that was only killed.

    The nemesis kills the last keeper of records here, since two others are about to register.
    """
    monkeypatch.setattr(Nemesis, "_is_last_keeper", lambda *_: False)
    monkeypatch.setattr(Nemesis, "_down", lambda nemesis: {*vars(nemesis)["_forgetful"]})
    if is_left:
        mutants.leaves_isrs_to_unheard_brokers(monkeypatch)
    found = False
    for seed in range(40) if is_left else (1, 16):
        try:
            simulate(seed, replace(busy_plan(seed, OUTAGES), seconds=10.0))
        except Failure:
            found = True
            break
    assert found is is_left
