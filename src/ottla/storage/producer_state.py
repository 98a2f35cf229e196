"""What a partition remembers of its producers: epochs, the last five batches, open transactions.

The rules are Apache Kafka 4's: a batch must follow its producer's last one, one of the last five
again is a duplicate, an older epoch is refused, and a producer that nobody remembers may start
anywhere. Entries are immutable, so that a failed write is taken back by putting the old ones back.
"""

from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Offset
from ottla.records.batch import CONTROL, NO_SEQUENCE, SEQUENCE_MAX, TRANSACTIONAL, Batch
from ottla.records.record import BadRecords, read_records

BATCHES_KEPT: Final = 5
MARKER_BYTES_MAX: Final = 64 * 1024

_CONTROL_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")  # Version and coordinator epoch.
_MARKED: Final = CONTROL | TRANSACTIONAL
_ABORT: Final = 0
_COMMIT: Final = 1


class Duplicate(Exception):
    """The batch is in the log already. If `base_offset` is only staged, so is this answer."""

    def __init__(self, base_offset: Offset, log_append_time: int) -> None:
        super().__init__(base_offset, log_append_time)
        self.base_offset = base_offset
        self.log_append_time = log_append_time


@dataclass(slots=True)
class Appended:
    """One batch of a producer, as far as a duplicate of it must be recognised."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX

    @property
    def first_offset(self) -> Offset:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class Producer:
    """Never changed once made. A plain class: a NamedTuple takes twice as long to make."""

    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_start: Offset = -1  # The first offset of its open transaction, or -1.
    batches: tuple[Appended, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Completed(NamedTuple):
    """A transaction whose marker was written."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    is_aborted: bool


NO_PRODUCER: Final = Producer()


class Producers:
    __slots__ = ("_completed", "_undo", "by_id", "end_offset", "ongoing")

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}
        self.ongoing: dict[Offset, int] = {}  # Open transactions: first offset to producer id.
        self._completed: dict[Offset, Offset] = {}  # First offset to marker, until replicated.
        self._undo: list[tuple[int, Producer | None]] = []
        self.end_offset: Offset = 0  # The state is that of the log up to here.

    def accept(self, batch: Batch, *, is_client: bool) -> Completed | None:
        """`check`, then `note`; in one step for the batch that follows its producer's last."""
        if not batch.attributes & _MARKED and self.follows(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_offset_delta,
            batch.base_offset,
            batch.max_timestamp,
        ):
            return None
        self.check(batch, is_client=is_client)
        return self.note(batch)

    def follows(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        delta: int,
        base_offset: Offset,
        timestamp: int,
    ) -> bool:
        """Note a batch without transaction if it is the next one of a known producer.

        False, and nothing is noted, for any other: `check` says what it is.
        """
        producer = self.by_id.get(producer_id)
        if producer is None or producer.epoch != epoch or producer.transaction_start >= 0:
            return False
        batches, last_sequence = producer.batches, sequence + delta
        if not batches or batches[-1].last_sequence + 1 != sequence or last_sequence > SEQUENCE_MAX:
            return False
        appended = Appended(last_sequence, base_offset + delta, delta, timestamp)
        self._undo.append((producer_id, producer))
        self.by_id[producer_id] = Producer(
            epoch,
            producer.coordinator_epoch,
            timestamp,
            -1,
            (*batches[1:], appended) if len(batches) == BATCHES_KEPT else (*batches, appended),
        )
        return True

    def check(self, batch: Batch, *, is_client: bool) -> None:
        """Refuse a batch that cannot come next from its producer; raise Duplicate for one we have.

        `is_client` False is for coordinators, whose batches bear no sequence.
        """
        producer = self.by_id.get(batch.producer_id)
        if producer is None:
            return
        epoch = batch.producer_epoch
        if epoch == producer.epoch and is_client and not batch.attributes & CONTROL:
            self._check_sequence(batch, producer)
        elif epoch < producer.epoch:
            raise Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {batch.producer_id} is {epoch}, which is smaller than the "
                f"last seen epoch {producer.epoch}",
            )
        elif is_client and epoch != producer.epoch and batch.base_sequence != 0:
            raise Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {batch.producer_id}: {epoch} "
                f"(request epoch), {batch.base_sequence} (seq. number), {producer.epoch} (current "
                "producer epoch)",
            )
        if batch.attributes & CONTROL:
            _check_coordinator(batch, producer)
        elif producer.transaction_start >= 0 and not batch.attributes & TRANSACTIONAL:
            raise Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {batch.producer_id}",
            )

    def check_new(self, batch: Batch) -> None:
        """Raise Duplicate for a batch that we have, and only then."""
        producer = self.by_id.get(batch.producer_id)
        if producer is not None and batch.producer_epoch == producer.epoch:
            _check_new(batch, producer)

    def _check_sequence(self, batch: Batch, producer: Producer) -> None:
        last_sequence = producer.last_sequence
        sequence = batch.base_sequence
        if sequence == last_sequence + 1:
            return
        _check_new(batch, producer)
        if sequence == 0 and last_sequence == SEQUENCE_MAX:
            return
        raise Refusal(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {batch.producer_id}: {sequence} (incoming "
            f"seq. number), {last_sequence} (current end sequence number)",
        )

    def note(self, batch: Batch) -> Completed | None:
        """The batch, its offset assigned, is in the log: remember it. A marker ends a transaction.

        What is noted can be taken back until `keep` is called.
        """
        producer_id = batch.producer_id
        old = self.by_id.get(producer_id)
        self._undo.append((producer_id, old))
        producer = old if old is not None else NO_PRODUCER
        if batch.attributes & CONTROL:
            return self._note_marker(batch, producer)
        delta = batch.last_offset_delta
        base_offset = batch.base_offset
        sequence = batch.base_sequence
        timestamp = batch.max_timestamp
        appended = Appended(
            (sequence + delta) & SEQUENCE_MAX if sequence >= 0 else NO_SEQUENCE,
            base_offset + delta,
            delta,
            timestamp,
        )
        epoch = batch.producer_epoch
        if epoch == producer.epoch:
            batches = (*producer.batches[-BATCHES_KEPT + 1 :], appended)
        else:
            batches = (appended,)
        start = producer.transaction_start
        if start < 0 and batch.attributes & TRANSACTIONAL:
            start = base_offset
            self.ongoing[start] = producer_id
        self.by_id[producer_id] = Producer(
            epoch, producer.coordinator_epoch, timestamp, start, batches
        )
        return None

    def _note_marker(self, batch: Batch, producer: Producer) -> Completed | None:
        marker = read_marker(batch)
        if marker is None:
            return None  # The whole transaction was compacted away.
        is_aborted, coordinator_epoch, timestamp = marker
        batches = producer.batches if batch.producer_epoch == producer.epoch else ()
        self.by_id[batch.producer_id] = Producer(
            batch.producer_epoch, coordinator_epoch, timestamp, -1, batches
        )
        if producer.transaction_start < 0:
            return None
        return Completed(
            batch.producer_id, producer.transaction_start, batch.base_offset, is_aborted
        )

    def stable_offset_after(self, completed: Completed) -> Offset:
        """The last stable offset once `completed` is done: what the transaction index records."""
        others = [
            first for first, producer in self.ongoing.items() if producer != completed.producer_id
        ]
        return min(others, default=completed.last_offset + 1)

    def complete(self, completed: Completed) -> None:
        self.ongoing.pop(completed.first_offset, None)
        self._completed[completed.first_offset] = completed.last_offset

    def first_unstable_offset(self, high_watermark: Offset) -> Offset | None:
        """The first offset whose fate is open, or decided by a marker not yet replicated."""
        if self._completed:
            done = [first for first, marker in self._completed.items() if marker < high_watermark]
            for first in done:
                del self._completed[first]
        if not self.ongoing and not self._completed:
            return None
        return min(min(self.ongoing, default=2**63), min(self._completed, default=2**63))

    @property
    def noted(self) -> int:
        """How many batches were noted since the last `keep`."""
        return len(self._undo)

    def as_of(self, noted: int) -> dict[int, Producer]:
        """The producers when only the first `noted` of those batches had been noted."""
        producers = dict(self.by_id)
        for producer_id, old in reversed(self._undo[noted:]):
            if old is None:
                producers.pop(producer_id, None)
            else:
                producers[producer_id] = old
        return producers

    def keep(self) -> None:
        """What was noted is written: it is not taken back any more."""
        self._undo.clear()

    def take_back(self) -> None:
        """Forget what was noted since the last `keep`: it never reached the file."""
        for producer_id, old in reversed(self._undo):
            new = self.by_id.get(producer_id)
            if new is not None and new.transaction_start >= 0:
                self.ongoing.pop(new.transaction_start, None)
            if old is None:
                self.by_id.pop(producer_id, None)
                continue
            self.by_id[producer_id] = old
            if old.transaction_start >= 0:
                self.ongoing[old.transaction_start] = producer_id
                self._completed.pop(old.transaction_start, None)
        self._undo.clear()

    def expire(self, now: int, expiration_ms: Millis) -> None:
        """Forget producers that were idle too long and have no open transaction."""
        idle = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if producer.transaction_start < 0 and now - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.by_id[producer_id]

    def load(self, producers: dict[int, Producer], end_offset: Offset) -> None:
        """Begin anew from a snapshot."""
        self.by_id = producers
        self.ongoing = {
            producer.transaction_start: producer_id
            for producer_id, producer in producers.items()
            if producer.transaction_start >= 0
        }
        self._completed = {}
        self._undo = []
        self.end_offset = end_offset


def _check_new(batch: Batch, producer: Producer) -> None:
    first, last = batch.base_sequence, batch.last_sequence
    for known in producer.batches:
        if known.last_sequence == last and known.first_sequence == first:
            raise Duplicate(known.first_offset, known.timestamp)


def _check_coordinator(batch: Batch, producer: Producer) -> None:
    marker = read_marker(batch)
    if marker is not None and marker[1] < producer.coordinator_epoch:
        raise Refusal(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Invalid coordinator epoch for producerId {batch.producer_id}: {marker[1]} (zombie), "
            f"{producer.coordinator_epoch} (current)",
        )


def read_marker(batch: Batch) -> tuple[bool, int, int] | None:
    """A transaction marker: whether it aborts, the coordinator's epoch, its timestamp.

    BadRecords if a control batch of a producer is none.
    """
    try:
        for record in read_records(batch, MARKER_BYTES_MAX):
            _, kind = _CONTROL_KEY.unpack_from(record.key or b"")
            _, coordinator_epoch = _MARKER.unpack_from(record.value or b"")
            if kind not in (_ABORT, _COMMIT):
                raise BadRecords(f"a control record of type {kind} ends no transaction")
            return kind == _ABORT, coordinator_epoch, record.timestamp
    except error as failure:
        raise BadRecords(f"a transaction marker that is too short: {failure}") from failure
    return None
