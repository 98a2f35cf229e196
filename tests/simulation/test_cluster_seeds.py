"""A whole cluster with its clients, in virtual time, from seeds: its promises hold under faults.

How long this runs is bounded by OTTLA_SIM_SECONDS for each of two tests, so that two cores share
the work. Seeds that once found something are kept below and run first.
`ottla simulate --brokers 3 --seed N` replays one.
"""

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.simulation.cluster_plan import ClusterRates, cluster_plan_for, without
from ottla.simulation.cluster_run import simulate_cluster
from tests.simulation.test_cluster_mutants import busy_plan

SECONDS = float(os.environ.get("OTTLA_SIM_SECONDS", "40"))
FIRST_SEED = int(os.environ.get("OTTLA_SIM_SEED", "1000"))
PARTS = 2

# Each of them has failed once: a log whose first segment was lost with the power, and whose rest
# passed for what retention had left (8), a consumer that was out of the range of a former leader,
# which had lost its log and served it as a follower (51); two brokers that had lost power, and led
# instead of a third that stopped cleanly before a new controller had heard them (92275).
KEPT = (8, 51, 92275)
TWICE = (2, 5, 16)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Brokers that are killed and starved have much to say; a failure says what matters."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", KEPT)
def test_what_was_found_once_stays_away(seed: int) -> None:
    simulate_cluster(seed)


# The same of runs with more faults than the seed itself decides: a controller that lost its epoch
# in the moment before a write, and ended (203); a metadata log that began too early after a
# restart, and had a follower cut what was committed (211).
KEPT_BUSY = {
    203: ClusterRates(blackout=0.4, partition=0.4, pause=0.3, kill=0.3, clean_restart=0.3),
    211: ClusterRates(power_loss=0.8, pause=0.4, partition=0.3, reassignment=0.5),
}


@pytest.mark.parametrize("seed", KEPT_BUSY)
def test_what_was_found_once_in_a_busy_run_stays_away(seed: int) -> None:
    plan = replace(busy_plan(seed, KEPT_BUSY[seed]), partitions=2, consumers=2, seconds=8.0)
    simulate_cluster(seed, plan)


def test_a_disk_that_fails_while_records_are_on_their_way_to_it_does_not_end_in_a_bug() -> None:
    """The metadata log lies on it, so the node ends, but by the disk's own error."""
    simulate_cluster(92640)


# The same of runs whose voters change: a broker that was the only voter, and was not heard when
# there were others again (93); a crash in the middle of cleaning a metadata log, after which it had
# forgotten an epoch, and as the leader had others cut what was committed (169); a voter that was
# killed when it alone knew that it was one no more, so that nobody could be elected (367); records
# that a killed broker had not synced, and that it lost with the power after it was started (543).
@pytest.mark.parametrize("seed", [93, 169, 367, 543])
def test_what_was_found_once_while_voters_changed_stays_away(seed: int) -> None:
    plan = cluster_plan_for(seed)
    simulate_cluster(seed, replace(plan, rates=replace(plan.rates, voter_change=1.0)))


def test_a_dead_broker_that_has_everything_is_not_passed_over_for_two_that_lost_power() -> None:
    """A new controller heard of the dead one first, and took it out of the ISR."""
    left_out = ("reset", "clock_jump", "producers", "consumers")
    simulate_cluster(80105, replace(without(cluster_plan_for(80105), left_out), seconds=10.0))


@pytest.mark.parametrize("seed", TWICE)
def test_a_seed_runs_the_same_way_twice(seed: int) -> None:
    assert simulate_cluster(seed) == simulate_cluster(seed)


@pytest.mark.timeout(SECONDS + 90)
@pytest.mark.parametrize("part", range(PARTS))
def test_new_seeds_keep_every_promise(part: int) -> None:
    end = time.monotonic() + SECONDS
    seeds = acknowledged = starts = 0
    while time.monotonic() < end or seeds < 2:
        report = simulate_cluster(FIRST_SEED + part + PARTS * seeds)
        acknowledged += report.acknowledged
        starts += report.starts
        seeds += 1
    assert acknowledged > 10 * seeds
    assert starts > 3 * seeds, "every run starts its three nodes, and some again"
