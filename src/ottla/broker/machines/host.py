"""Drives a replicated state machine: appends its records, applies them, answers once committed.

The next command decides on the records of the last one, however long the commit takes. A reply
waits for the last append in the scope of its decision, also if the decision wrote nothing: it may
rest on that append. A reply that waits too long is replaced by the `late` reply; its records stay
in the log and may still be committed.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heappop, heappush
from typing import Generic, NamedTuple, TypeVar

from ottla.env.clock import Clock
from ottla.model.errors import Refusal
from ottla.model.machine import Decision, StateMachine, Ticket
from ottla.model.types import Millis, Monotonic, Offset

Command = TypeVar("Command")
Record = TypeVar("Record")
Reply = TypeVar("Reply")

Append = Callable[[list[Record], bool], tuple[Offset, list[Record]]]


class CommitTimeout(NamedTuple, Generic[Reply]):
    """How long a reply may wait for its commit, and the reply that is given instead."""

    timeout_ms: Millis
    late: Reply


class MachineHost(Generic[Command, Record, Reply]):
    """`append` takes records, and whether they must be one batch; Refusal if it took none.

    It returns the offset of the first record and the records as they were written.
    """

    def __init__(
        self,
        machine: StateMachine[Command, Record, Reply],
        append: Append[Record],
        clock: Clock,
        end_offset: Offset,
        *,
        committed_end: Offset | None = None,
        commit_timeout: CommitTimeout[Reply] | None = None,
    ) -> None:
        """The machine was loaded up to `end_offset`; by default all of that is committed."""
        self._machine = machine
        self._append = append
        self._clock = clock
        self._appended_end = self._shared_end = end_offset
        self._committed_end = end_offset if committed_end is None else committed_end
        self._commit_timeout = commit_timeout
        self._tickets = 0
        self._waiting: dict[Ticket, Callable[[Reply], None]] = {}
        self._parked: list[tuple[Offset, int, Ticket, Reply]] = []  # A heap.
        self._parked_count = 0  # Replies that wait for the same offset leave in order.
        self._late: deque[tuple[Monotonic, Ticket]] = deque()
        # The end of the last uncommitted append in each scope, in order; of all, `_shared_end`.
        self._scope_ends: OrderedDict[Hashable, Offset] = OrderedDict()

    def submit(self, command: Command, on_reply: Callable[[Reply], None]) -> None:
        """Decide; `on_reply` gets the reply once that is committed, refused or late."""
        self._tickets += 1
        self._waiting[self._tickets] = on_reply
        self._perform(self._machine.decide(self._tickets, command, self._clock.monotonic()))

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
            if ticket in self._waiting:
                self._answer(ticket, self._commit_timeout.late)

    def late_at(self) -> Monotonic | None:
        """When the first reply that waits for its commit is late."""
        while self._late and self._late[0][1] not in self._waiting:
            self._late.popleft()
        return self._late[0][0] if self._late else None

    def committed(self, end_offset: Offset) -> None:
        """Everything below `end_offset` is durable: release the replies that waited for it."""
        self._committed_end = max(self._committed_end, end_offset)
        while self._parked and self._parked[0][0] <= self._committed_end:
            _, _, ticket, reply = heappop(self._parked)
            if ticket in self._waiting:  # Else it was late.
                self._answer(ticket, reply)
        ends = self._scope_ends
        while ends and next(iter(ends.values())) <= self._committed_end:
            ends.popitem(last=False)

    def drop(self, reply: Reply) -> None:
        """The machine is lost: every command that waits gets the same reply."""
        self._parked.clear()
        self._late.clear()
        for ticket in list(self._waiting):
            self._answer(ticket, reply)

    def _perform(self, decision: Decision[Record, Reply]) -> None:
        if decision.records:
            try:
                base, written = self._append(decision.records, decision.is_atomic)
            except Refusal as refusal:
                for ticket, _ in decision.replies:
                    self._answer(ticket, refusal)  # type: ignore[arg-type]
                return
            for offset, record in enumerate(written, base):
                self._machine.apply(offset, record)
            self._note_end(decision.scope, base + len(written))
        for change in decision.on_append:
            change()
        if decision.replies:
            end = self._rests_on(decision.scope)
            release = self._answer if end <= self._committed_end else partial(self._park, end)
            for ticket, reply in decision.replies:
                release(ticket, reply)

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

    def _park(self, end: Offset, ticket: Ticket, reply: Reply) -> None:
        self._parked_count += 1
        heappush(self._parked, (end, self._parked_count, ticket, reply))
        if self._commit_timeout is not None:
            late_at = Monotonic(self._clock.monotonic() + self._commit_timeout.timeout_ms)
            self._late.append((late_at, ticket))

    def _answer(self, ticket: Ticket, reply: Reply) -> None:
        self._waiting.pop(ticket)(reply)
