from dataclasses import replace

import pytest

from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.simulation.cluster_plan import ClusterRates, cluster_plan_for
from ottla.simulation.cluster_run import simulate_cluster
from ottla.simulation.running import Failure
from tests.unit.simulation.small_cluster import small_cluster


def test_a_run_reports_what_it_came_to_and_does_so_again() -> None:
    told: list[str] = []
    report = simulate_cluster(5, small_cluster(5), told.append)
    assert report.events == len(told)
    assert report.starts == 3
    assert report.acknowledged == report.sent > 20
    assert report.faults == {}
    assert simulate_cluster(5, small_cluster(5)) == report


def test_a_kill_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    report = simulate_cluster(5, small_cluster(5, ClusterRates(kill=2.0)))
    assert report.starts > 3
    assert report.healed_seconds < 30


def test_a_group_goes_on_at_its_next_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    plan = replace(cluster_plan_for(21), seconds=3.0)  # A seed that has one.
    report = simulate_cluster(21, replace(plan, rates=ClusterRates(kill=1.0)))
    assert plan.groups
    assert report.starts > 3
    assert report.commits > 5


def test_a_failure_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    bug = KeyError("bug")
    monkeypatch.setattr(ReplicatedPartition, "tick", lambda *_: (_ for _ in ()).throw(bug))
    monkeypatch.setattr(ReplicatedPartition, "append", lambda *_: (_ for _ in ()).throw(bug))
    with pytest.raises(Failure) as failure:
        simulate_cluster(5, small_cluster(5))
    assert "ottla simulate --brokers 3 --seed 5" in str(failure.value)
