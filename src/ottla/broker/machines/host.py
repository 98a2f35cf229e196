"""Drives a replicated state machine: appends its records, applies them, answers once committed.

The next command decides on the records of the last one, however long the commit takes. A reply
waits for the last append in the scope of its decision, also if the decision wrote nothing: it may
rest on that append; so does an effect. A reply that waits too long is replaced by a refusal; its
records stay in the log and may still be committed.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heappop, heappush
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.broker.machines.answer import Answer
from ottla.env.clock import Clock
from ottla.model.errors import Refusal
from ottla.model.machine import Decision, StateMachine, Ticket
from ottla.model.types import Millis, Monotonic, Offset

Command = TypeVar("Command")
Record = TypeVar("Record")
Reply = TypeVar("Reply")

Append = Callable[[Decision[Record, Any]], tuple[Offset, list[Record]]]


class CommitTimeout(NamedTuple):
    """How long a reply may wait for its commit, and the refusal that is given instead."""

    timeout_ms: Millis
    late: Refusal


def no_effects(effect: object) -> None:
    raise AssertionError(f"nobody performs {effect}")


class MachineHost(Generic[Command, Record, Reply]):
    """`append` takes the records of a decision, or its marker; Refusal if it took none.

    It returns the offset of the first record and the records as they were written. `perform` is
    given effects, in the order in which they were decided; what comes of one may be submitted as
    a command.
    """

    def __init__(
        self,
        machine: StateMachine[Command, Record, Reply],
        append: Append[Record],
        clock: Clock,
        end_offset: Offset,
        *,
        perform: Callable[[Any], None] = no_effects,
        committed_end: Offset | None = None,
        commit_timeout: CommitTimeout | None = None,
    ) -> None:
        """The machine was loaded up to `end_offset`; by default all of that is committed."""
        self._machine = machine
        self._append = append
        self._perform_effect = perform
        self._clock = clock
        self._appended_end = self._shared_end = end_offset
        self._committed_end = end_offset if committed_end is None else committed_end
        self._commit_timeout = commit_timeout
        self._tickets = 0
        self._waiting: dict[Ticket, Answer[Reply]] = {}
        # A heap of what is to be done at an offset, in order.
        self._parked: list[tuple[Offset, int, Callable[[], None]]] = []
        self._parked_count = 0
        self._late: deque[tuple[Monotonic, Ticket]] = deque()
        # The end of the last uncommitted append in each scope, in order; of all, `_shared_end`.
        self._scope_ends: OrderedDict[Hashable, Offset] = OrderedDict()

    def submit(self, command: Command) -> Answer[Reply]:
        """Decide; the answer is given once that is committed, refused or late."""
        self._tickets += 1
        answer: Answer[Reply] = Answer()
        self._waiting[self._tickets] = answer
        self._perform(self._machine.decide(self._tickets, command, self._clock.monotonic()))
        return answer

    def tick(self) -> None:
        """Decide everything that is due now, one decision after the other."""
        now = self._clock.monotonic()
        self._perform(self._machine.tick(now))
        while (deadline := self._machine.next_deadline()) is not None and deadline <= now:
            self._perform(self._machine.tick(now))

    def refuse_late(self) -> None:
        """Answer the replies that have waited too long for their commit."""
        if self._commit_timeout is None:
            return
        now = self._clock.monotonic()
        while self._late and self._late[0][0] <= now:
            _, ticket = self._late.popleft()
            self._answer_waiting(ticket, self._commit_timeout.late)

    def late_at(self) -> Monotonic | None:
        """When the first reply that waits for its commit is late."""
        while self._late and self._late[0][1] not in self._waiting:
            self._late.popleft()
        return self._late[0][0] if self._late else None

    def committed(self, end_offset: Offset) -> None:
        """Everything below `end_offset` is durable: release the replies that waited for it."""
        self._committed_end = max(self._committed_end, end_offset)
        while self._parked and self._parked[0][0] <= self._committed_end:
            _, _, release = heappop(self._parked)
            release()
        ends = self._scope_ends
        while ends and next(iter(ends.values())) <= self._committed_end:
            ends.popitem(last=False)

    def drop(self, refusal: Refusal) -> None:
        """The machine is lost: every command that waits gets the same refusal."""
        self._parked.clear()
        self._late.clear()
        for ticket in list(self._waiting):
            self._answer(ticket, refusal)

    def _perform(self, decision: Decision[Record, Reply]) -> None:
        if decision.records or decision.marker is not None:
            try:
                base, written = self._append(decision)
            except Refusal as refusal:
                for ticket, _ in decision.replies:
                    self._answer(ticket, refusal)
                return
            self._note_end(decision.scope, self._apply(base, written, decision))
        for change in decision.on_append:
            change()
        if decision.replies or decision.effects:
            self._release(decision, self._rests_on(decision.scope))

    def _apply(
        self, base: Offset, written: list[Record], decision: Decision[Record, Reply]
    ) -> Offset:
        """What was appended is true from now on; returns where it ends."""
        if decision.marker is not None:
            assert not written, "a marker is a batch of its own"
            self._machine.ended(decision.marker.producer, decision.marker.verdict)
            return base + 1
        for offset, record in enumerate(written, base):
            self._machine.apply(offset, record, decision.producer)
        return base + len(written)

    def _release(self, decision: Decision[Record, Reply], end: Offset) -> None:
        is_committed = end <= self._committed_end
        for ticket, reply in decision.replies:
            if is_committed:
                self._answer(ticket, reply)
            else:
                self._park(end, partial(self._answer_waiting, ticket, reply))
                self._note_late(ticket)
        for effect in decision.effects:
            if is_committed:
                self._perform_effect(effect)
            else:
                self._park(end, partial(self._perform_effect, effect))

    def _note_end(self, scope: Hashable, end: Offset) -> None:
        self._appended_end = end
        if scope is None:
            self._shared_end = end
        else:
            self._scope_ends[scope] = end
            self._scope_ends.move_to_end(scope)

    def _rests_on(self, scope: Hashable) -> Offset:
        if scope is None:
            return self._appended_end
        return max(self._scope_ends.get(scope, 0), self._shared_end)

    def _park(self, end: Offset, release: Callable[[], None]) -> None:
        self._parked_count += 1
        heappush(self._parked, (end, self._parked_count, release))

    def _note_late(self, ticket: Ticket) -> None:
        if self._commit_timeout is not None:
            late_at = Monotonic(self._clock.monotonic() + self._commit_timeout.timeout_ms)
            self._late.append((late_at, ticket))

    def _answer_waiting(self, ticket: Ticket, reply: Reply | Refusal) -> None:
        """The commit and its timeout may come in any order: the first of them answers."""
        if ticket in self._waiting:
            self._answer(ticket, reply)

    def _answer(self, ticket: Ticket, reply: Reply | Refusal) -> None:
        self._waiting.pop(ticket).give(reply)
