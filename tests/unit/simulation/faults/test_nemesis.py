from dataclasses import fields, replace

import pytest

from ottla.simulation.plans.plan import ADMINISTRATION, Plan, Rates
from ottla.simulation.plans.swarm import OF_SEVERAL
from ottla.simulation.plans.swarm_additions import HOUSEKEEPING
from ottla.simulation.runs.run import simulate
from tests.unit.simulation.small import small_cluster, small_plan

HARMS = [field.name for field in fields(Rates) if field.name not in ADMINISTRATION]


@pytest.mark.parametrize("kind", [name for name in HARMS if name not in OF_SEVERAL])
def test_each_kind_of_harm_is_done_to_a_single_broker_when_its_rate_says_so(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    report = simulate(1, small_plan(rates=Rates(**{kind: 4.0}), is_synced=True))
    assert set(report.faults) == {kind}
    assert report.acknowledged >= 5


def _with_sealed_segments(plan: Plan) -> Plan:
    """Only sealed segments rot, once they are checkpointed."""
    configs, settings = {"internal.segment.bytes": "1024"}, plan.settings | HOUSEKEEPING
    return replace(plan, topic_configs=configs, settings=settings, value_bytes_max=400)


@pytest.mark.parametrize("kind", HARMS)
def test_each_kind_of_harm_is_done_to_a_cluster_when_its_rate_says_so(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    plan = small_cluster(rates=Rates(**{kind: 2.0}), is_synced=True)
    report = simulate(1, _with_sealed_segments(plan) if kind == "bit_rot" else plan)
    assert set(report.faults) == {kind}
    assert report.acknowledged >= 5


def test_without_rates_nothing_is_harmed() -> None:
    assert simulate(1, small_plan()).faults == {}


def test_without_sync_no_node_loses_power_whose_records_no_other_keeps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")
    report = simulate(3, small_cluster(3, Rates(power_loss=5.0)))
    assert report.faults["power_loss"] > 3
    assert report.acknowledged >= 5


def test_a_single_broker_without_sync_may_lose_what_it_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")
    report = simulate(3, small_plan(3, Rates(power_loss=5.0)))
    assert report.faults["power_loss"] > 1
    assert report.starts > 2
