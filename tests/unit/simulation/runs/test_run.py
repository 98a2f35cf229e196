from dataclasses import replace

import pytest

from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.wire.memory import Holder, RequestMemory, Waiting
from ottla.simulation.plans.plan import Rates
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.run import Failure, simulate
from tests.unit.simulation.small import small_cluster, small_plan


def test_a_run_of_one_broker_reports_what_it_came_to_and_does_so_again() -> None:
    told: list[str] = []
    report = simulate(5, small_plan(5), told.append)
    assert report.seed == 5
    assert report.events == len(told)
    assert report.starts == 2, "once at the beginning, once after the clean stop at the end"
    assert report.virtual_seconds > 1
    assert simulate(5, small_plan(5)) == report


def test_a_run_of_a_cluster_reports_what_it_came_to_and_does_so_again() -> None:
    told: list[str] = []
    report = simulate(5, small_cluster(5), told.append)
    assert report.events == len(told)
    assert report.starts == 3
    assert report.acknowledged == report.sent > 20
    assert report.faults == {}
    assert simulate(5, small_cluster(5)) == report


def test_another_seed_is_another_run() -> None:
    assert simulate(5, small_plan(5)).digest != simulate(6, small_plan(6)).digest


def test_a_kill_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    report = simulate(5, small_cluster(5, Rates(kill=2.0)))
    assert report.starts > 3
    assert report.healed_seconds < 30


def test_a_group_goes_on_at_its_next_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    plan = next(plan for seed in range(50) if (plan := plan_for(seed, 3)).groups)
    report = simulate(plan.seed, replace(plan, seconds=3.0, rates=Rates(kill=1.0)))
    assert report.starts > 3
    assert report.commits > 5


@pytest.mark.parametrize(("brokers", "kind"), [(1, Partition), (3, ReplicatedPartition)])
def test_a_failure_says_how_to_see_it_again(
    brokers: int,
    kind: type[Partition],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")
    monkeypatch.setattr(kind, "append", lambda *_: (_ for _ in ()).throw(KeyError("bug")))
    with pytest.raises(Failure) as failure:
        simulate(5, small_plan(5, brokers=brokers))
    text = str(failure.value)
    assert f"ottla simulate --brokers {brokers} --seed 5" in text
    assert "receives" in text


def test_request_memory_that_is_never_released_fails_a_run_without_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold = RequestMemory.hold

    def leak(self: RequestMemory, holder: Holder, count: int) -> bool:
        hold(self, Waiting(), 1)
        return hold(self, holder, count)

    monkeypatch.setattr(RequestMemory, "hold", leak)
    # Frames that come in several pieces are counted.
    configs = {"internal.segment.bytes": "2000000"}
    plan = replace(small_cluster(5), value_bytes_max=500_000, topic_configs=configs)
    with pytest.raises(Failure, match="request_bytes, 0 when fresh"):
        simulate(5, plan)
