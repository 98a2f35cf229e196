import pytest

from ottla.broker.partition import Partition
from ottla.simulation.run import Failure, simulate
from tests.unit.simulation.small import small_plan


def test_a_run_reports_what_it_came_to() -> None:
    told: list[str] = []
    report = simulate(5, small_plan(5), told.append)
    assert report.seed == 5
    assert report.events == len(told)
    assert report.starts == 2, "once at the beginning, once after the clean stop at the end"
    assert report.virtual_seconds > 1
    assert simulate(5, small_plan(5)) == report


def test_another_seed_is_another_run() -> None:
    assert simulate(5, small_plan(5)).digest != simulate(6, small_plan(6)).digest


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "append", lambda *_: (_ for _ in ()).throw(KeyError("bug")))
    with pytest.raises(Failure) as failure:
        simulate(5, small_plan(5))
    text = str(failure.value)
    assert "ottla simulate --seed 5" in text
    assert "receives" in text
