import pytest

from ottla.simulation.plan import Rates
from ottla.simulation.run import simulate
from tests.unit.simulation.small import small_plan

# What administrators do is no harm.
CHANGES = {"topic_deletion", "record_deletion", "config_change"}


@pytest.mark.parametrize("kind", [name for name in Rates.__slots__ if name not in CHANGES])
def test_each_kind_of_harm_is_done_when_its_rate_says_so(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    report = simulate(1, small_plan(rates=Rates(**{kind: 4.0}), is_synced=True))
    assert set(report.faults) == {kind}
    assert report.acknowledged >= 5


def test_without_rates_nothing_is_harmed() -> None:
    assert simulate(1, small_plan()).faults == {}
