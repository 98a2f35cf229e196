"""The one shape behind every coordinator: a pure state machine over a log.

`decide` and `tick` return records to write and replies to release once those are committed;
`apply` alone changes durable state, so that loading is replaying. `broker/machine_host.py` drives
every machine of this shape.
"""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ottla.model.types import Monotonic, Offset

Ticket = int  # Stands for whoever waits for a reply.

Command = TypeVar("Command", contravariant=True)
Record = TypeVar("Record")
Reply = TypeVar("Reply")


@dataclass(slots=True)
class Decision(Generic[Record, Reply]):
    """Records that are written together or not at all, and what is said once they are."""

    records: list[Record] = field(default_factory=list)
    replies: list[tuple[Ticket, Reply]] = field(default_factory=list)


class StateMachine(Protocol[Command, Record, Reply]):
    def decide(
        self, ticket: Ticket, command: Command, now: Monotonic
    ) -> Decision[Record, Reply]: ...

    def tick(self, now: Monotonic) -> Decision[Record, Reply]: ...

    def apply(self, offset: Offset, record: Record) -> None: ...

    def next_deadline(self) -> Monotonic | None: ...
