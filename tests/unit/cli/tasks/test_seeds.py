from dataclasses import replace

import pytest

from ottla.cli.tasks.seeds import Wanted, run_seed, run_seeds
from ottla.simulation.history.history import Violation
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.run import World

SMALL = Wanted(brokers=3, left_out=("groups",), seconds=1.0)


def test_a_plan_omits_excluded_faults() -> None:
    assert Wanted().plan(1) == plan_for(1)
    assert Wanted(brokers=3).plan(1) == plan_for(1, 3)
    expected = replace(plan_for(1, 3), groups=(), seconds=1.0)
    assert SMALL.plan(1) == expected


def test_a_fault_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="earthquake"):
        Wanted(left_out=("earthquake",)).plan(1)


def test_a_good_seed_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    outcome = run_seed(replace(SMALL, is_twice=True), 9)
    assert outcome.is_good
    assert outcome.text.startswith("seed 9: ")
    assert "well after" in outcome.text


def test_a_failing_seed_prints_its_replay_command(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("CRITICAL")

    async def prepare(self: World) -> None:
        raise Violation("a record is lost")

    monkeypatch.setattr(World, "_prepare", prepare)
    assert run_seeds(SMALL, [9], jobs=2) == 1
    told = capsys.readouterr().err
    assert "ottla simulate --brokers 3 --seed 9 --without groups --seconds 1" in told


def test_a_single_broker_has_a_line_of_its_own() -> None:
    outcome = run_seed(Wanted(left_out=("groups",), seconds=1.0), 2)
    assert "offsets committed" in outcome.text
