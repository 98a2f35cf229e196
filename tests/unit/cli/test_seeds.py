from dataclasses import replace

import pytest

from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.cli.seeds import Wanted, run_seed, run_seeds
from ottla.model.types import WallTime
from ottla.simulation.cluster_plan import cluster_plan_for

SMALL = Wanted(brokers=3, left_out=("groups",), seconds=1.0)


def test_a_plan_is_the_seeds_own_but_for_what_is_left_out() -> None:
    assert Wanted().plan(1) is None
    assert Wanted(brokers=3).plan(1) == cluster_plan_for(1)
    expected = replace(cluster_plan_for(1), groups=(), seconds=1.0)
    assert SMALL.plan(1) == expected


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (Wanted(seconds=1.0), "--brokers 3"),
        (Wanted(brokers=3, left_out=("earthquake",)), "earthquake"),
    ],
)
def test_what_cannot_be_is_refused(wanted: Wanted, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wanted.plan(1)


def test_a_good_seed_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    outcome = run_seed(replace(SMALL, is_twice=True), 9)
    assert outcome.is_good
    assert outcome.text.startswith("seed 9: ")
    assert "well after" in outcome.text


def test_a_bad_seed_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("CRITICAL")

    def forget(self: ReplicatedPartition, now: WallTime) -> None:
        """Nobody is ever answered."""

    monkeypatch.setattr(ReplicatedPartition, "flush", forget)
    assert run_seeds(SMALL, [9], jobs=2) == 1
    told = capsys.readouterr().err
    assert "ottla simulate --brokers 3 --seed 9 --without groups --seconds 1" in told


def test_a_single_broker_has_a_line_of_its_own() -> None:
    outcome = run_seed(Wanted(), 2)
    assert "offsets committed" in outcome.text
