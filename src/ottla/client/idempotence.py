"""Idempotent writing to one partition, without I/O: numbers of batches, and what a failure means.

A batch keeps its producer id, epoch and sequence over all attempts that may have been written: the
broker drops duplicates. A batch that was certainly never written and is out of sequence is sent
under the next epoch, from sequence 0 (KIP-360). Unlike Kafka's client, a batch that may have been
written never is: a deposed leader answers OUT_OF_ORDER_SEQUENCE_NUMBER too.

`delivery` drives this with one batch under way, Spark's sink with several.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from ottla.client.errors import OUT_OF_SEQUENCE, TOO_LARGE, ClientError, Refused
from ottla.model.errors import ErrorCode
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, SEQUENCE_MAX, Batch

EPOCH_MAX = 32767
# The second one: it was written long ago, before what the broker remembers.
WRITTEN = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
# Refusals after which the batch may be in a log all the same: a leader that is deposed, or loses
# its disk, refuses what it has appended and perhaps replicated.
MAYBE_WRITTEN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class Identity(NamedTuple):
    producer_id: int
    producer_epoch: int


class Numbering(NamedTuple):
    """Producer id, epoch and next sequence of a partition, where an earlier process left them."""

    identity: Identity
    next_sequence: int = 0


class Numbers(NamedTuple):
    """What the header of a batch says about its producer."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE


NO_NUMBERS = Numbers()


class Verdict(Enum):
    """What to do with a batch whose attempt has failed."""

    AGAIN = "send it again, after a pause"
    SPLIT = "send it as two batches"
    FAILED = "give it up"


@dataclass(slots=True, eq=False, kw_only=True)
class OutgoingBatch:
    count: int
    data: bytearray = field(default_factory=bytearray)  # Empty until it is sealed.
    numbers: Numbers = NO_NUMBERS
    unanswered: int = 0  # The number of attempts that may have been written.

    @property
    def may_be_written(self) -> bool:
        return self.unanswered > 0


Outgoing = TypeVar("Outgoing", bound=OutgoingBatch)


class Unconfirmed(Generic[Outgoing]):
    """The batches of one partition that are not confirmed yet, oldest first."""

    def __init__(self, identity: Identity | None, next_sequence: int = 0) -> None:
        """Without an identity, batches have no numbers, until there is one."""
        self.identity = identity
        self.is_fixed = False  # True: no other identity is ever used; such a batch fails.
        self.is_known = False  # To the broker: it takes any sequence from an identity it never saw.
        self.batches: deque[Outgoing] = deque()
        self._next_sequence = next_sequence

    def identify(self, identity: Identity) -> None:
        """Number all batches from 0, under a new identity."""
        self.identity, self.is_known = identity, False
        self._renumber(0)

    def add(self, batch: Outgoing) -> None:
        self.batches.append(batch)
        self._number(batch)

    def sent(self, batch: Outgoing) -> None:
        batch.unanswered += 1

    def answered(self, batch: Outgoing, code: int) -> bool:
        """Note the answer to an attempt; True if the batch is written, and confirmed by that."""
        if code not in MAYBE_WRITTEN:
            batch.unanswered -= 1
        if code not in WRITTEN:
            return False
        self.confirm(batch)
        return True

    def confirm(self, batch: Outgoing) -> None:
        self.batches.remove(batch)
        self.is_known = True

    def failed(self, batch: Outgoing, failure: ClientError) -> Verdict:
        """What to do about the oldest batch; after AGAIN its numbers may be others."""
        code = failure.code if isinstance(failure, Refused) else ErrorCode.NONE
        if code in TOO_LARGE and batch.count > 1:
            return Verdict.SPLIT
        is_uncertain = any(each.may_be_written for each in self.batches)
        if code in OUT_OF_SEQUENCE and not self.is_fixed:
            if not is_uncertain:  # Else the next leader has what was acknowledged.
                self._raise_epoch()
            return Verdict.AGAIN
        if code == ErrorCode.INVALID_PRODUCER_EPOCH and not self.is_fixed and not is_uncertain:
            self.identity = None
            return Verdict.AGAIN
        return Verdict.AGAIN if failure.is_retriable else Verdict.FAILED

    def split(self, first: Outgoing, second: Outgoing) -> None:
        """Replace the oldest batch by its halves, under the same sequence numbers.

        If the whole batch may be in the log, its halves are no duplicates to the broker: neither
        may be sent under another epoch.
        """
        whole = self.batches.popleft()
        assert first.count + second.count == whole.count, "halves hold the same records"
        first.unanswered = second.unanswered = whole.unanswered
        self.batches.extendleft((second, first))
        self._renumber(whole.numbers.base_sequence)

    def abandon(self, batch: Outgoing) -> None:
        """Give the oldest batch up: those after it must not wait for its sequence numbers."""
        self.batches.remove(batch)
        if self.is_fixed:
            return
        if batch.may_be_written:
            self._raise_epoch()  # Its sequence may be used; and it may still be on its way.
        else:
            self._renumber(batch.numbers.base_sequence)

    def _raise_epoch(self) -> None:
        """Begin again at sequence 0; the broker then refuses batches of the epoch before."""
        if self.identity is not None:
            producer_id, epoch = self.identity
            self.identity = Identity(producer_id, epoch + 1) if epoch < EPOCH_MAX else None
            self.is_known = False
            self._renumber(0)

    def _renumber(self, sequence: int) -> None:
        self._next_sequence = sequence
        for batch in self.batches:
            self._number(batch)

    def _number(self, batch: Outgoing) -> None:
        if self.identity is None:
            return
        batch.numbers = Numbers(*self.identity, self._next_sequence)
        self._next_sequence = (self._next_sequence + batch.count) & SEQUENCE_MAX
        if batch.data:
            Batch(batch.data).set_producer(*batch.numbers)
