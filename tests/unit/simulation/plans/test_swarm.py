from dataclasses import fields

import pytest

from ottla.simulation.history.history import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    ACKS_ONE,
    IDEMPOTENT,
    PIPELINED,
)
from ottla.simulation.plans.plan import DELAYS, Rates
from ottla.simulation.plans.swarm import OF_SEVERAL, plan_for
from ottla.simulation.world.loop import MICROSECOND, MILLISECOND

ALONE = [plan_for(seed) for seed in range(200)]
CLUSTERS = [plan_for(seed, 3) for seed in range(200)]
NAMES = [field.name for field in fields(Rates)]


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_seed_decides_the_same_each_time_and_seeds_differ(brokers: int) -> None:
    plans = [plan_for(seed, brokers) for seed in range(50)]
    assert plans == [plan_for(seed, brokers) for seed in range(50)]
    assert len({str(plan) for plan in plans}) > 45


def test_every_fault_is_in_some_clusters_and_not_in_others() -> None:
    for name in NAMES:
        share = sum(bool(getattr(plan.rates, name)) for plan in CLUSTERS) / len(CLUSTERS)
        assert 0.03 < share < 0.95, name
    assert max(len(plan.happening()) for plan in CLUSTERS) < len(NAMES)


def test_a_single_broker_has_every_fault_that_needs_no_other_node() -> None:
    for name in NAMES:
        count = sum(bool(getattr(plan.rates, name)) for plan in ALONE)
        assert (count == 0) is (name in OF_SEVERAL), name


def test_producers_ask_for_every_guarantee() -> None:
    for plans, kinds in (
        (ALONE, (IDEMPOTENT, PIPELINED, ACKS_ONE, ACKS_NONE)),
        (CLUSTERS, (IDEMPOTENT, PIPELINED, ACKS_ALL, ACKS_LEADER, ACKS_NONE)),
    ):
        assert {kind for plan in plans for kind in plan.producers} == set(kinds)
        assert all(plan.producers[0].is_ordered for plan in plans)
        assert not any(p.may_lose_acknowledged and PIPELINED in p.producers for p in plans)


def test_traffic_delays_and_faults_have_factors_of_their_own() -> None:
    assert {plan.records_per_second for plan in CLUSTERS} >= {10.0, 30.0, 100.0, 150.0}
    delays = {plan.delay_ns_mean for plan in CLUSTERS}
    assert min(delays) == 50 * MICROSECOND
    assert max(delays) == 30 * MILLISECOND
    kills = {plan.rates.kill for plan in CLUSTERS}
    assert {0.1, 2.0} <= kills, "by ten, but no more often than twice a second"
    assert max(plan.rates.reassignment for plan in CLUSTERS) == 0.5


def test_what_cannot_be_promised_is_not_asked_for() -> None:
    for plan in (*ALONE, *CLUSTERS):
        assert not (plan.rates.disk_error and plan.rates.power_loss)
        assert plan.is_synced == (plan.settings.get("log.flush.interval.messages") == "1")
        assert plan.is_synced or not plan.rates.blackout
        assert not (plan.groups and plan.may_lose_acknowledged)


def test_a_share_of_the_clusters_with_groups_has_delays() -> None:
    plans = [plan for plan in CLUSTERS if plan.groups]
    assert len(plans) > 30
    assert len(plans) / 5 < sum(plan.is_delayed for plan in plans) < len(plans) / 2
    for name in DELAYS:
        assert any(getattr(plan.rates, name) for plan in plans), name
    assert any(plan.rates.kill for plan in plans)
