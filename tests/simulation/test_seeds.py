"""Brokers with their clients, in virtual time, from seeds: their promises hold under faults.

How long new seeds run is bounded by OTTLA_SIM_SECONDS for each of the tests, so that two cores
share the work. `ottla simulate --brokers N --seed S` replays one.
"""

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.run import simulate
from tests.simulation.plans import busy_plan

SECONDS = float(os.environ.get("OTTLA_SIM_SECONDS", "40"))
FIRST_SEED = int(os.environ.get("OTTLA_SIM_SEED", "1000"))
SEEDS_MIN = 3
PARTS = 2


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Brokers that are killed and starved have much to say; a failure says what matters."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("brokers", "seed"), [(1, 13), (1, 20), (3, 2), (3, 5), (3, 16)])
def test_a_seed_runs_the_same_way_twice(brokers: int, seed: int) -> None:
    plan = plan_for(seed, brokers)
    assert simulate(seed, plan) == simulate(seed, plan)


# Seeds that have found a bug once, with the number of brokers and what it was.
KEPT = {
    (1, 40): "a single broker stayed fenced after the disk of its metadata log had been full",
    (1, 2002715): "the same while groups were served",
}


@pytest.mark.parametrize(("brokers", "seed"), KEPT, ids=str)
def test_a_seed_that_found_a_bug_finds_no_other(brokers: int, seed: int) -> None:
    simulate(seed, plan_for(seed, brokers))


@pytest.mark.timeout(SECONDS + 90)
def test_new_seeds_of_one_broker_keep_every_promise() -> None:
    run_seeds(1, range(FIRST_SEED, FIRST_SEED + 1_000_000))


@pytest.mark.timeout(SECONDS + 90)
@pytest.mark.parametrize("part", range(PARTS))
def test_new_seeds_of_a_cluster_keep_every_promise(part: int) -> None:
    run_seeds(3, range(FIRST_SEED + part, FIRST_SEED + 1_000_000, PARTS))


def run_seeds(brokers: int, seeds: range) -> None:
    end = time.monotonic() + SECONDS
    done = acknowledged = starts = 0
    for seed in seeds:
        if time.monotonic() > end and done >= SEEDS_MIN:
            break
        report = simulate(seed, plan_for(seed, brokers))
        acknowledged += report.acknowledged
        starts += report.starts
        done += 1
    assert acknowledged > 10 * done
    assert starts > brokers * done, "some nodes are started again"


# Combinations of faults that have found a bug once, with what it was.
FOUND = {
    "the first segment of a log was lost with the power, and the rest passed for retention's": (
        Rates(power_loss=0.8, one_way=0.3, reassignment=0.5, config_change=0.5)
    ),
    "a former leader that lost its log served it as a follower": (
        Rates(power_loss=0.8, voter_change=1.0)
    ),
    "brokers without power replaced one that stopped before a new controller heard them": (
        Rates(kill=0.5, power_loss=0.8, clean_restart=0.5, slow_link=0.5)
    ),
    "a disk failed while records were on their way to it": (
        Rates(disk_error=0.5, clock_jump=0.5, pause=0.3, voter_change=1.0)
    ),
    "a controller lost its epoch in the moment before a write": (
        Rates(blackout=0.4, partition=0.4, pause=0.3, kill=0.3, clean_restart=0.3)
    ),
    "a metadata log began too early after a restart, and a follower truncated committed records": (
        Rates(power_loss=0.8, pause=0.4, partition=0.3, reassignment=0.5)
    ),
    "a broker that was the only voter was not heard when there were others again": (
        Rates(reset=0.3, kill=0.6, topic_deletion=0.5, blackout=0.2, partition=0.3, voter_change=1)
    ),
    "a crash while a metadata log was cleaned, which had forgotten an epoch then": (
        Rates(reset=1.0, disk_full=0.3, topic_deletion=0.5, reassignment=0.5, voter_change=1.0)
    ),
    "a voter was killed when it alone knew that it was one no more": (
        Rates(kill=0.6, one_way=0.3, reassignment=0.5, election=0.5, voter_change=1.0)
    ),
    "a killed broker had not synced records that it lost with the power after its start": (
        Rates(reset=0.3, kill=0.6, power_loss=0.6, blackout=0.3, voter_change=1.0)
    ),
}


@pytest.mark.parametrize("found", FOUND)
def test_faults_that_found_a_bug_in_a_cluster_find_no_other(found: str) -> None:
    for seed in (1, 2):
        plan = busy_plan(seed, FOUND[found])
        simulate(seed, replace(plan, partitions=2, consumers=2, seconds=6.0))


FOUND_ALONE = {
    "the name of a log directory, or of a topic, was not synced": (Rates(power_loss=1.0), True),
    "a topic id was lost with the power and missed after the next clean stop": (
        Rates(reset=0.5, kill=0.5, power_loss=0.5, clean_restart=0.5),
        False,
    ),
    "a log that a killed broker had created had no synced name after the next start": (
        Rates(clog=0.2, kill=0.6, power_loss=0.3, clean_restart=0.1, pause=0.3, config_change=2.0),
        True,
    ),
    "a directory failed while the broker started": (Rates(kill=1.0, disk_error=0.5), False),
    "a start and a clean stop on a full disk": (
        Rates(kill=0.5, disk_full=0.7, clean_restart=0.7, topic_deletion=1.0),
        False,
    ),
}


@pytest.mark.parametrize("found", FOUND_ALONE)
def test_faults_that_found_a_bug_in_one_broker_find_no_other(found: str) -> None:
    rates, is_synced = FOUND_ALONE[found]
    for seed in (1, 2):
        simulate(seed, alone(seed, rates, is_synced=is_synced))


def alone(seed: int, rates: Rates, *, is_synced: bool) -> Plan:
    plan = busy_plan(seed, rates, brokers=1, is_synced=is_synced)
    return replace(plan, topics=2, partitions=2, log_dirs=2, is_restarted=True)
