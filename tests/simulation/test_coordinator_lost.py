"""The coordinator of a group is lost at every single append of its log, in three ways."""

import logging
from collections.abc import Iterator

import pytest

from ottla.simulation.plans.group_plan import Kind
from ottla.simulation.runs.run import Failure
from tests.simulation.group_mutants import loads_all_but_the_end
from tests.simulation.losing import lose, lose_at_message

PARTS = 4
MESSAGES_APART = 30  # Each of them would take minutes.


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("how", ["torn", "written", "told"])
@pytest.mark.parametrize("kind", [Kind.CLASSIC, Kind.CONSUMER])
def test_a_coordinator_lost_at_any_append_breaks_no_promise(
    kind: Kind, how: str, part: int
) -> None:
    at = part + 1
    while lose(kind, at, how) >= at:  # Else the run was over before.
        at += PARTS
    assert at > 20, "the group writes something at every step"


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("kind", [Kind.CLASSIC, Kind.CONSUMER])
def test_a_coordinator_lost_while_messages_arrive_breaks_no_promise(kind: Kind, part: int) -> None:
    at = 1 + part * MESSAGES_APART // 2
    while lose_at_message(kind, at) >= at:
        at += MESSAGES_APART
    assert at > 200, "there is much to be said"


def test_a_coordinator_that_reads_too_little_of_its_log_is_found_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads_all_but_the_end(monkeypatch)
    with pytest.raises(Failure, match=r"^seed \d+: G\d: "):
        lose_everywhere(Kind.CLASSIC, "told", range(1, 30))


def lose_everywhere(kind: Kind, how: str, steps: range) -> None:
    for at in steps:
        lose(kind, at, how)
