"""The interface of every coordinator: a pure state machine over a log.

`decide` and `tick` return records to write, with replies and effects to release once those are
committed; `apply` and `ended` alone change durable state, so that loading is replaying.
`broker/machines/host.py` drives every such state machine.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.model.errors import Refusal
from ottla.model.types import Monotonic, Offset, ProducerId

Ticket = int  # Identifies a request that waits for a reply.

Command = TypeVar("Command", contravariant=True)
Record = TypeVar("Record")
Reply = TypeVar("Reply")


class Producer(NamedTuple):
    """The producer whose transaction a record is part of."""

    id: ProducerId
    epoch: int


class Verdict(Enum):
    """How a transaction ended, by Kafka's types of control records."""

    ABORT = 0
    COMMIT = 1


class Marker(NamedTuple):
    """The control record that ends a transaction in one log."""

    producer: Producer
    verdict: Verdict
    coordinator_epoch: int


@dataclass(slots=True)
class Decision(Generic[Record, Reply]):
    """Records to write, and what is released once the records are committed.

    The log may refuse the records (no room, too few in-sync replicas, too large). Then none of
    them is written, every reply is that refusal, no effect is released, and `on_append` is not
    called. Effects are lost with the machine: after loading it has to ask for them again.
    """

    records: list[Record] = field(default_factory=list)
    replies: list[tuple[Ticket, Reply | Refusal]] = field(default_factory=list)
    effects: list[Any] = field(default_factory=list)  # Of the machine's own classes.
    producer: Producer | None = None  # The records are part of this producer's transaction.
    marker: Marker | None = None  # Written instead of records.
    is_atomic: bool = True  # False: the records may be split into several batches.
    scope: Hashable = None  # The part of the state that was read and written; None for all of it.
    on_append: list[Callable[[], None]] = field(default_factory=list)  # Changes of soft state.


class StateMachine(Protocol[Command, Record, Reply]):
    def decide(
        self, ticket: Ticket, command: Command, now: Monotonic
    ) -> Decision[Record, Reply]: ...

    def tick(self, now: Monotonic) -> Decision[Record, Reply]: ...

    def apply(self, offset: Offset, record: Record, producer: Producer | None) -> None:
        """A record was appended or replayed; of a transaction that is still open, if it has one."""

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        """The marker of a transaction was appended or replayed."""

    def next_deadline(self) -> Monotonic | None: ...
