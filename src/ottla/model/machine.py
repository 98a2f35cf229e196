"""The interface of every coordinator: a pure state machine over a log.

`decide` and `tick` return records to write and replies to release once those are committed; only
`apply` changes durable state, so that loading is replaying. `broker/machines/host.py` drives every
such state machine.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ottla.model.types import Monotonic, Offset

Ticket = int  # Identifies a request that waits for a reply.

Command = TypeVar("Command", contravariant=True)
Record = TypeVar("Record")
Reply = TypeVar("Reply")


@dataclass(slots=True)
class Decision(Generic[Record, Reply]):
    """Records to write, and the replies that are released once the records are committed.

    The log may refuse the records (no room, too few in-sync replicas, too large). Then none of
    them is written, every reply is that refusal, and `on_append` is not called.
    """

    records: list[Record] = field(default_factory=list)
    replies: list[tuple[Ticket, Reply]] = field(default_factory=list)
    is_atomic: bool = True  # False: the records may be split into several batches.
    scope: Hashable = None  # The part of the state that was read and written; None for all of it.
    on_append: list[Callable[[], None]] = field(default_factory=list)  # Changes of soft state.


class StateMachine(Protocol[Command, Record, Reply]):
    def decide(
        self, ticket: Ticket, command: Command, now: Monotonic
    ) -> Decision[Record, Reply]: ...

    def tick(self, now: Monotonic) -> Decision[Record, Reply]: ...

    def apply(self, offset: Offset, record: Record) -> None: ...

    def next_deadline(self) -> Monotonic | None: ...
