"""The simulation of a cluster finds bugs: each of these within a stated number of seeds."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.simulation.cluster_plan import ClusterPlan, ClusterRates, cluster_plan_for
from ottla.simulation.cluster_run import simulate_cluster
from ottla.simulation.history import IDEMPOTENT
from ottla.simulation.running import Failure
from tests.simulation import cluster_mutants as mutants

KILLS = ClusterRates(kill=1.5)
CUTS = ClusterRates(partition=0.7, one_way=0.3, kill=0.3)
POWER = ClusterRates(power_loss=1.5)
BLACKOUT = ClusterRates(blackout=0.5)
DELETION = ClusterRates(record_deletion=3.0, blackout=0.5)


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
        (mutants.forgets_to_truncate, CUTS, 10),
        (mutants.keeps_deleted_records, DELETION, 3),
        (mutants.truncates_too_much, KILLS, 10),
        (mutants.lets_anyone_join_the_isr, KILLS, 10),
        (mutants.forgets_producers_at_failover, KILLS, 10),
        (mutants.does_not_notice_a_power_loss, POWER, 10),
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
    rates: ClusterRates,
    seeds_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    for seed in range(seeds_max):
        try:
            simulate_cluster(seed, busy_plan(seed, rates))
        except Failure:
            return
    pytest.fail(f"{mutant.__name__} survives {seeds_max} seeds")


def test_without_a_bug_the_same_runs_pass() -> None:
    for seed, rates in enumerate((KILLS, CUTS, POWER, BLACKOUT, DELETION)):
        simulate_cluster(seed, busy_plan(seed, rates))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_forgotten", [False, True])
def test_what_was_deleted_does_not_come_back(
    is_forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by these seeds: a follower that all lost power with led from the old beginning."""
    found = 0
    if is_forgotten:
        mutants.forgets_where_logs_begin(monkeypatch)
    for seed, rate in ((80030, 0.5), (80035, 2.0)):
        plan = cluster_plan_for(seed)
        rates = replace(plan.rates, record_deletion=rate)
        try:
            simulate_cluster(seed, replace(plan, rates=rates))
        except Failure:
            found += 1
    assert (found > 0) is is_forgotten


def busy_plan(seed: int, rates: ClusterRates) -> ClusterPlan:
    is_synced = bool(rates.blackout)
    plan = cluster_plan_for(seed)
    settings = {k: v for k, v in plan.settings.items() if k != "log.flush.interval.messages"}
    settings |= {"broker.session.timeout.ms": "3000", "replica.lag.time.max.ms": "1500"}
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    return replace(
        plan,
        seconds=5.0,
        topics=1,
        partitions=1,
        producers=(IDEMPOTENT,) * 2,
        consumers=1,
        records_per_second=60.0,
        is_synced=is_synced,
        rates=rates,
        settings=settings,
        groups=(),
        is_restarted=False,
    )
