from ottla.simulation.history import ACKS_NONE, ACKS_ONE, IDEMPOTENT
from ottla.simulation.plan import Rates, plan_for

PLANS = [plan_for(seed) for seed in range(200)]


def test_a_seed_is_a_plan() -> None:
    assert plan_for(7) == plan_for(7)
    assert plan_for(7) != plan_for(8)
    assert "plan" not in str(plan_for(7))


def test_every_fault_and_every_producer_is_in_some_plans_and_not_in_others() -> None:
    for name in Rates.__slots__:
        share = sum(bool(getattr(plan.rates, name)) for plan in PLANS) / len(PLANS)
        assert 0.05 < share < 0.95, name
    for guarantee in (IDEMPOTENT, ACKS_ONE, ACKS_NONE):
        assert any(guarantee in plan.producers for plan in PLANS)
        assert any(guarantee not in plan.producers for plan in PLANS)


def test_what_cannot_be_promised_is_known() -> None:
    for plan in PLANS:
        assert not (plan.rates.disk_error and plan.rates.power_loss)
        is_synced = plan.settings.get("log.flush.interval.messages") == "1"
        assert plan.is_synced == is_synced
        assert plan.may_lose_acknowledged == bool(plan.rates.power_loss and not is_synced)
        assert plan.has_sick_disk == bool(plan.rates.disk_full or plan.rates.disk_error)
