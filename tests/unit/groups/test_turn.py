"""A turn gathers what a decision writes, answers and waits for."""

from ottla.groups.settings import GroupSettings
from ottla.groups.timers import TimerKey, Timers
from ottla.groups.turn import Around, Turn
from ottla.model.types import Monotonic, WallTime
from ottla.protocol.group_records import GroupMetadataKey, GroupRecord


def test_a_turn_gathers_records_replies_and_deadlines() -> None:
    timers = Timers()
    around = Around(GroupSettings(), timers, lambda: WallTime(7), lambda: "id")
    turn = Turn(around, Monotonic(100))
    turn.write(GroupMetadataKey("g"), None)
    turn.reply(3, "done")
    turn.set_timer("session", "g", "m", 50)
    assert turn.wall == 7
    assert turn.decision.records == [GroupRecord(GroupMetadataKey("g"), None)]
    assert turn.decision.replies == [(3, "done")]
    assert timers.next_deadline() is None, "the log may refuse the records"
    for change in turn.decision.on_append:
        change()
    assert timers.next_deadline() == 150
    turn.cancel_timer("session", "g", "m")
    turn.decision.on_append[-1]()
    assert not timers.is_set(TimerKey("session", "g", "m"))


def test_a_timer_without_delay_is_not_due_in_the_turn_that_sets_it() -> None:
    timers = Timers()
    turn = Turn(Around(GroupSettings(), timers, lambda: WallTime(7), lambda: "id"), Monotonic(100))
    turn.set_timer("session", "g", "m", 0)
    turn.decision.on_append[-1]()
    assert list(timers.due(Monotonic(100))) == []
    assert len(list(timers.due(Monotonic(101)))) == 1
