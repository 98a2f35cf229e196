from dataclasses import replace

import pytest

from ottla.simulation.cluster_plan import DELAYS, cluster_plan_for, without


def test_a_seed_decides_the_same_each_time_and_seeds_differ() -> None:
    plans = [cluster_plan_for(seed) for seed in range(50)]
    assert plans == [cluster_plan_for(seed) for seed in range(50)]
    assert len({str(plan) for plan in plans}) > 45


def test_every_kind_of_fault_is_in_some_seed_and_in_none_are_all() -> None:
    plans = [cluster_plan_for(seed) for seed in range(200)]
    kinds = {kind for plan in plans for kind in plan.happening()}
    assert kinds >= {"kill", "power_loss", "blackout", "pause", "partition", "one_way"}
    assert kinds >= {"disk_full", "disk_error", "slow_link", "reassignment", "lonely_client"}
    assert max(len(plan.happening()) for plan in plans) < len(kinds)


def test_all_lose_power_only_where_every_record_is_synced() -> None:
    plans = [cluster_plan_for(seed) for seed in range(200)]
    assert all(plan.is_synced for plan in plans if plan.rates.blackout)
    assert not any(plan.rates.disk_error and plan.rates.power_loss for plan in plans)


def test_a_plan_is_made_smaller_by_name() -> None:
    plan = next(p for p in map(cluster_plan_for, range(99)) if p.rates.kill and p.groups)
    smaller = without(plan, ("kill", "groups", "producers", "consumers"))
    assert "kill" not in smaller.happening()
    assert smaller.groups == ()
    assert (len(smaller.producers), smaller.consumers) == (1, 0)
    assert replace(smaller, rates=plan.rates).happening() == plan.happening()
    with pytest.raises(KeyError):
        without(plan, ("earthquake",))


def test_where_there_are_groups_nobody_is_only_late() -> None:
    plans = [plan for plan in map(cluster_plan_for, range(200)) if plan.groups]
    assert len(plans) > 30
    assert not any(getattr(plan.rates, name) for plan in plans for name in DELAYS)
    assert any(plan.rates.kill for plan in plans)
