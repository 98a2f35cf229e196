import pytest

from ottla.simulation.world.disk import Crashed
from ottla.simulation.world.stepped_work import SteppedWork


def test_work_stops_at_each_pause_and_goes_on_when_advanced() -> None:
    done: list[str] = []

    def work(name: str) -> int:
        done.append(f"{name} begins")
        pause()
        done.append(f"{name} ends")
        return 7

    stepped = SteppedWork(work, ("it",))
    assert done == []
    assert not stepped.advance()
    assert done == ["it begins"]
    assert SteppedWork.current is None
    assert stepped.advance()
    assert done == ["it begins", "it ends"]
    assert stepped.result() == 7


def test_two_works_interleave() -> None:
    order: list[str] = []

    def work(name: str) -> None:
        for step in range(2):
            order.append(f"{name}{step}")
            pause()

    first, second = SteppedWork(work, ("a",)), SteppedWork(work, ("b",))
    for _ in range(3):
        first.advance()
        second.advance()
    assert order == ["a0", "b0", "a1", "b1"]


def test_the_error_of_work_is_raised_where_its_result_is_asked_for() -> None:
    def work() -> None:
        raise OSError("sick")

    stepped = SteppedWork(work, ())
    assert stepped.advance()
    with pytest.raises(OSError, match="sick"):
        stepped.result()


def test_abandoned_work_meets_a_crash_at_its_pause_and_at_every_later_one() -> None:
    met: list[str] = []

    def work() -> None:
        try:
            pause()
        except Crashed:
            met.append("first")
            pause()

    stepped = SteppedWork(work, ())
    stepped.advance()
    stepped.abandon()
    assert met == ["first"]
    with pytest.raises(Crashed):
        stepped.result()


def test_work_that_never_began_is_abandoned_without_running() -> None:
    done: list[int] = []
    SteppedWork(done.append, (1,)).abandon()
    assert done == []


def pause() -> None:
    assert SteppedWork.current is not None
    SteppedWork.current.pause()
