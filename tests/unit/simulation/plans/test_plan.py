from dataclasses import replace

import pytest

from ottla.simulation.plans.plan import DELAYS, Rates, without
from ottla.simulation.plans.swarm import plan_for
from tests.unit.simulation.small import small_cluster, small_plan


def test_a_plan_is_made_smaller_by_name() -> None:
    plans = (plan_for(seed, 3) for seed in range(99))
    plan = next(p for p in plans if p.rates.kill and p.groups)
    smaller = without(plan, ("kill", "groups", "producers", "consumers"))
    assert "kill" not in smaller.happening()
    assert smaller.groups == ()
    assert (len(smaller.producers), smaller.consumers) == (1, 0)
    assert replace(smaller, rates=plan.rates).happening() == plan.happening()
    with pytest.raises(KeyError):
        without(plan, ("earthquake",))


def test_only_a_single_broker_that_does_not_sync_may_lose_records_with_the_power() -> None:
    power = Rates(power_loss=1.0)
    assert small_plan(rates=power).may_lose_acknowledged
    assert not small_plan(rates=power, is_synced=True).may_lose_acknowledged
    assert not small_plan(rates=Rates(kill=1.0)).may_lose_acknowledged
    assert not small_cluster(rates=power).may_lose_acknowledged


@pytest.mark.parametrize("kind", DELAYS)
def test_faults_that_delay_messages_are_known(kind: str) -> None:
    assert small_cluster(rates=Rates(**{kind: 1.0})).is_delayed
    assert not small_cluster(rates=Rates(kill=1.0)).is_delayed
