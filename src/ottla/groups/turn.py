"""One decision while it is made: what is known, and what will be written and answered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.groups.settings import ConsumerTimes, GroupSettings
from ottla.groups.timers import TimerKey, Timers
from ottla.groups.topics import CompileExpression, NoTopics, Topics, no_expressions
from ottla.model.machine import Decision, Ticket
from ottla.model.types import Millis, Monotonic, WallTime
from ottla.protocol.group_records import GroupRecord

# ruff: noqa: ANN401  Keys, values and replies are of many classes.

DELAY_MS_MIN: Final = 1  # A timer set while others fire is not due at the same time.


def admit_all(_: Sequence[GroupRecord]) -> None:
    """A log that takes everything."""


class GroupCommand(NamedTuple):
    """A request of a client, and who that is."""

    request: Any
    version: int
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class Around:
    """What every decision of a coordinator depends on, beside its groups."""

    settings: GroupSettings
    timers: Timers
    wall: Callable[[], WallTime]
    new_id: Callable[[], str]  # The random part of a member id.
    topics: Topics = field(default_factory=NoTopics)
    compile_expression: CompileExpression = no_expressions
    consumer_times: Callable[[str], ConsumerTimes] = lambda _: ConsumerTimes()  # By group id.
    admit: Callable[[Sequence[GroupRecord]], None] = admit_all


@dataclass(slots=True)
class Turn:
    around: Around
    now: Monotonic
    decision: Decision[GroupRecord, Any] = field(default_factory=Decision)

    @property
    def settings(self) -> GroupSettings:
        return self.around.settings

    @property
    def wall(self) -> WallTime:
        return self.around.wall()

    def consumer_times(self, group_id: str) -> ConsumerTimes:
        return self.around.consumer_times(group_id)

    def reply(self, ticket: Ticket, response: Any) -> None:
        self.decision.replies.append((ticket, response))

    def write(self, key: Any, value: Any) -> None:
        self.decision.records.append(GroupRecord(key, value))

    def admit(self, *records: GroupRecord) -> None:
        """Refusal if the log takes no records now, or not these.

        Records are refused after the decision, too. A decision that changes more than records and
        timers asks before it changes anything.
        """
        self.around.admit(records)

    def on_append(self, change: Callable[[], None]) -> None:
        """Change soft state, unless the records of this decision are refused."""
        self.decision.on_append.append(change)

    def set_timer(self, kind: str, group_id: str, member_id: str, delay_ms: Millis) -> None:
        deadline = Monotonic(self.now + max(delay_ms, DELAY_MS_MIN))
        key = TimerKey(kind, group_id, member_id)
        self.on_append(partial(self.around.timers.set, key, deadline))

    def set_due(self, kind: str, group_id: str) -> None:
        """Set a timer of a group that is due before the next command; it must not set itself."""
        self.on_append(partial(self.around.timers.set, TimerKey(kind, group_id, ""), self.now))

    def is_timer_set(self, kind: str, group_id: str, member_id: str = "") -> bool:
        return self.around.timers.is_set(TimerKey(kind, group_id, member_id))

    def cancel_timer(self, kind: str, group_id: str, member_id: str = "") -> None:
        self.on_append(partial(self.around.timers.cancel, TimerKey(kind, group_id, member_id)))
