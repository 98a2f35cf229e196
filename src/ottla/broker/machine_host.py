"""What drives a replicated state machine: append its records, apply them, answer once committed.

The next command decides on what the last one wrote, however long the commit takes. An answer that
wrote nothing waits too, for all that was appended when it was given: it may rest on that.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ottla.env.clock import Clock
from ottla.model.machine import Decision, StateMachine, Ticket
from ottla.model.types import Offset

Command = TypeVar("Command")
Record = TypeVar("Record")
Reply = TypeVar("Reply")

Append = Callable[[list[Record]], tuple[Offset, list[Record]]]


class MachineHost(Generic[Command, Record, Reply]):
    """`append` takes a decision's records and says from which offset on what was written."""

    def __init__(
        self,
        machine: StateMachine[Command, Record, Reply],
        append: Append[Record],
        clock: Clock,
        end_offset: Offset,
    ) -> None:
        self._machine = machine
        self._append = append
        self._clock = clock
        self._appended_end = self._committed_end = end_offset
        self._tickets = 0
        self._waiting: dict[Ticket, Callable[[Reply], None]] = {}
        self._parked: deque[tuple[Offset, Ticket, Reply]] = deque()

    def submit(self, command: Command, on_reply: Callable[[Reply], None]) -> None:
        """Decide; `on_reply` hears the answer when it is committed, perhaps only later decided."""
        self._tickets += 1
        self._waiting[self._tickets] = on_reply
        self._perform(self._machine.decide(self._tickets, command, self._clock.monotonic()))

    def tick(self) -> None:
        self._perform(self._machine.tick(self._clock.monotonic()))

    def committed(self, end_offset: Offset) -> None:
        """Everything below `end_offset` is durable: release the answers that waited for it."""
        self._committed_end = max(self._committed_end, end_offset)
        self._appended_end = max(self._appended_end, end_offset)
        while self._parked and self._parked[0][0] <= self._committed_end:
            _, ticket, reply = self._parked.popleft()
            self._answer(ticket, reply)

    def drop(self, reply: Reply) -> None:
        """The machine is lost: everyone who waits gets the same answer."""
        self._parked.clear()
        for ticket in list(self._waiting):
            self._answer(ticket, reply)

    def _perform(self, decision: Decision[Record, Reply]) -> None:
        if decision.records:
            base, written = self._append(decision.records)
            for offset, record in enumerate(written, base):
                self._machine.apply(offset, record)
            self._appended_end = base + len(written)
        for ticket, reply in decision.replies:
            if self._appended_end <= self._committed_end:
                self._answer(ticket, reply)
            else:
                self._parked.append((self._appended_end, ticket, reply))

    def _answer(self, ticket: Ticket, reply: Reply) -> None:
        self._waiting.pop(ticket)(reply)
