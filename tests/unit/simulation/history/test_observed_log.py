"""What a partition holds as far as anyone was told."""

from ottla.simulation.history.observed_log import ObservedLog
from ottla.simulation.history.operations import Kind, Operation, Outcome

FIRST = Operation(0, "p", Outcome.OK, Kind.POLL, 0, 1)
SECOND = Operation(1, "q", Outcome.OK, Kind.POLL, 2, 3)


def test_places_leave_out_the_offsets_that_hold_nothing() -> None:
    log = ObservedLog()
    for offset in (7, 3, 40):
        log.holds(offset, f"at {offset}", FIRST)
    log.number()
    assert [log.place(offset) for offset in (3, 7, 40)] == [0, 1, 2]
    assert log.first_place("at 7") == log.last_place("at 7") == 1


def test_a_value_at_two_offsets_has_a_first_and_a_last_place() -> None:
    log = ObservedLog()
    log.holds(5, "a", FIRST)
    log.holds(2, "a", SECOND)
    log.number()
    assert (log.first_place("a"), log.last_place("a")) == (0, 1)


def test_a_value_that_nobody_saw_has_no_place() -> None:
    log = ObservedLog()
    log.number()
    assert log.first_place("a") is None
    assert log.last_place("a") is None


def test_whoever_says_it_first_is_remembered() -> None:
    log = ObservedLog()
    log.holds(0, "a", FIRST)
    log.holds(0, "a", SECOND)
    log.holds(0, "b", SECOND)
    assert log.values[0] == {"a": FIRST, "b": SECOND}
    assert log.offsets == {"a": [0], "b": [0]}
