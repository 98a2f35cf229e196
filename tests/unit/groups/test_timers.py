"""Deadlines come when they are due, once, and where they were last set."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.timers import TimerKey, Timers
from ottla.model.types import Monotonic


def key(name: str) -> TimerKey:
    return TimerKey("session", name)


def due(timers: Timers, now: int) -> list[str]:
    return [key.group_id for key in timers.due(Monotonic(now))]


def test_a_deadline_comes_once() -> None:
    timers = Timers()
    timers.set(key("a"), Monotonic(10))
    assert due(timers, 9) == []
    assert due(timers, 10) == ["a"]
    assert due(timers, 99) == []


def test_a_deadline_that_moved_later_comes_later_only() -> None:
    timers = Timers()
    timers.set(key("a"), Monotonic(10))
    timers.set(key("a"), Monotonic(20))
    assert due(timers, 15) == []
    assert due(timers, 20) == ["a"]


def test_a_deadline_that_moved_earlier_comes_once() -> None:
    timers = Timers()
    timers.set(key("a"), Monotonic(20))
    timers.set(key("a"), Monotonic(10))
    assert due(timers, 10) == ["a"]
    timers.set(key("a"), Monotonic(30))
    assert due(timers, 20) == []
    assert due(timers, 30) == ["a"]


def test_a_cancelled_deadline_never_comes() -> None:
    timers = Timers()
    timers.set(key("a"), Monotonic(10))
    timers.cancel(key("a"))
    assert not timers.is_set(key("a"))
    assert due(timers, 10) == []


Steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 30)), st.integers(0, 3))
)


@given(steps=Steps)
def test_they_behave_as_a_dictionary_of_deadlines(
    steps: list[tuple[str, int | None, int]],
) -> None:
    timers, model, now = Timers(), dict[str, int](), 0
    for name, deadline, passed in steps:
        if deadline is None:
            timers.cancel(key(name))
            model.pop(name, None)
        else:
            timers.set(key(name), Monotonic(now + deadline))
            model[name] = now + deadline
        first = timers.next_deadline()
        assert not model or (first is not None and first <= min(model.values()))
        now += passed
        came = {name for name, at in model.items() if at <= now}
        assert set(due(timers, now)) == came
        for name in came:
            del model[name]
