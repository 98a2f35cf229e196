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
    assert timers.next_deadline() == 150
    turn.cancel_timer("session", "g", "m")
    assert not timers.is_set(TimerKey("session", "g", "m"))
