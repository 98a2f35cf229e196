from dataclasses import fields

import pytest

from ottla.simulation.cluster_plan import ClusterRates
from ottla.simulation.cluster_run import simulate_cluster
from tests.unit.simulation.small_cluster import small_cluster

# What administrators do is no harm.
CHANGES = {
    "topic_deletion",
    "record_deletion",
    "config_change",
    "reassignment",
    "election",
    "voter_change",
}
HARMS = [field.name for field in fields(ClusterRates) if field.name not in CHANGES]


@pytest.mark.parametrize("kind", HARMS)
def test_each_kind_of_harm_is_done_when_its_rate_says_so(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    plan = small_cluster(rates=ClusterRates(**{kind: 2.0}), is_synced=True)
    report = simulate_cluster(1, plan)
    assert set(report.faults) == {kind}
    assert report.acknowledged >= 5


def test_without_sync_nobody_loses_power_whose_records_no_one_else_keeps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")
    report = simulate_cluster(3, small_cluster(3, ClusterRates(power_loss=5.0)))
    assert report.faults["power_loss"] > 3
    assert report.acknowledged >= 5
