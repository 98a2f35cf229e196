"""Batches of one partition: each is written at most once and in order, whatever fails."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import OUT_OF_SEQUENCE, ClientError, ConnectionLost, Refused
from ottla.client.idempotence import (
    EPOCH_MAX,
    MAYBE_WRITTEN,
    NO_NUMBERS,
    Identity,
    Numbers,
    OutgoingBatch,
    Unconfirmed,
    Verdict,
)
from ottla.model.errors import ErrorCode
from ottla.records.batch import SEQUENCE_MAX, Batch
from ottla.records.record import Record, build_batch

OUT_OF_ORDER = Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
OURS = Identity(7, 1)
LOST = ConnectionLost("lost")


def unconfirmed(
    *counts: int, identity: Identity | None = OURS, next_sequence: int = 100
) -> Unconfirmed[OutgoingBatch]:
    made: Unconfirmed[OutgoingBatch] = Unconfirmed(identity, next_sequence)
    for count in counts:
        made.add(OutgoingBatch(count=count))
    return made


def numbers(line: Unconfirmed[OutgoingBatch]) -> list[tuple[int, int, int]]:
    return [tuple(batch.numbers) for batch in line.batches]


def test_numbers_follow_each_other_and_begin_again_after_the_largest() -> None:
    line = unconfirmed(3, 2, next_sequence=SEQUENCE_MAX - 1)
    assert numbers(line) == [(7, 1, SEQUENCE_MAX - 1), (7, 1, 1)]


def test_without_an_identity_batches_have_no_numbers_until_there_is_one() -> None:
    line = unconfirmed(3, 2, identity=None)
    assert numbers(line) == [NO_NUMBERS, NO_NUMBERS]
    line.identify(Identity(9, 0))
    assert numbers(line) == [(9, 0, 0), (9, 0, 3)]


@pytest.mark.parametrize("code", OUT_OF_SEQUENCE)
def test_out_of_sequence_and_never_written_goes_on_in_the_next_epoch(code: ErrorCode) -> None:
    line = unconfirmed(3, 2)
    records = [Record(index, 5, None, b"v") for index in range(3)]
    line.batches[0].data = build_batch(records)
    line.is_known = True
    assert line.failed(line.batches[0], Refused(code)) is Verdict.AGAIN
    assert numbers(line) == [(7, 2, 0), (7, 2, 3)]
    assert not line.is_known
    sealed = Batch(line.batches[0].data)
    assert (sealed.producer_id, sealed.producer_epoch, sealed.base_sequence) == (7, 2, 0)
    assert sealed.is_valid


@pytest.mark.parametrize("uncertain", [0, 1])
def test_out_of_sequence_while_one_may_be_written_changes_no_number(uncertain: int) -> None:
    line = unconfirmed(3, 2)
    line.sent(line.batches[uncertain])
    assert line.failed(line.batches[0], OUT_OF_ORDER) is Verdict.AGAIN
    assert numbers(line) == [(7, 1, 100), (7, 1, 103)]


def test_after_the_last_epoch_another_identity_is_needed() -> None:
    line = unconfirmed(3, identity=Identity(7, EPOCH_MAX))
    assert line.failed(line.batches[0], OUT_OF_ORDER) is Verdict.AGAIN
    assert line.identity is None
    line.identify(Identity(8, 0))
    assert numbers(line) == [(8, 0, 0)]


def test_an_epoch_that_is_over_ends_the_identity_of_what_was_never_written() -> None:
    line = unconfirmed(3)
    over = Refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert line.failed(line.batches[0], over) is Verdict.AGAIN
    assert line.identity is None
    line = unconfirmed(3)
    line.sent(line.batches[0])
    assert line.failed(line.batches[0], over) is Verdict.FAILED
    assert line.identity == (7, 1)


@pytest.mark.parametrize("code", [*OUT_OF_SEQUENCE, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_fixed_numbers_are_never_changed(code: ErrorCode) -> None:
    line = unconfirmed(3)
    line.is_fixed = True
    assert line.failed(line.batches[0], Refused(code)) is Verdict.FAILED
    assert numbers(line) == [(7, 1, 100)]


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [
        (LOST, Verdict.AGAIN),
        (Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER), Verdict.AGAIN),
        (Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED), Verdict.FAILED),
        (Refused(ErrorCode.MESSAGE_TOO_LARGE), Verdict.SPLIT),
        (Refused(ErrorCode.RECORD_LIST_TOO_LARGE), Verdict.SPLIT),
    ],
)
def test_what_a_failure_means(failure: ClientError, verdict: Verdict) -> None:
    line = unconfirmed(3)
    assert line.failed(line.batches[0], failure) is verdict
    assert numbers(line) == [(7, 1, 100)]


def test_one_record_cannot_be_split() -> None:
    line = unconfirmed(1)
    assert line.failed(line.batches[0], Refused(ErrorCode.MESSAGE_TOO_LARGE)) is Verdict.FAILED


def test_halves_have_the_numbers_of_the_whole_and_may_be_written_if_it_may() -> None:
    line = unconfirmed(5, 2)
    line.sent(line.batches[0])
    line.split(OutgoingBatch(count=2), OutgoingBatch(count=3))
    assert numbers(line) == [(7, 1, 100), (7, 1, 102), (7, 1, 105)]
    assert [batch.may_be_written for batch in line.batches] == [True, True, False]


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER])
def test_a_batch_is_confirmed_when_it_is_in_the_log(code: ErrorCode) -> None:
    line = unconfirmed(1, 1)
    first, second = line.batches
    line.sent(first)
    assert line.answered(first, code)
    assert list(line.batches) == [second]
    assert line.is_known


@pytest.mark.parametrize("code", [*MAYBE_WRITTEN, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_a_refusal_tells_whether_the_batch_may_be_written(code: ErrorCode) -> None:
    line = unconfirmed(1)
    batch = line.batches[0]
    line.sent(batch)
    assert not line.answered(batch, code)
    assert batch.may_be_written == (code in MAYBE_WRITTEN)


def test_a_certain_refusal_does_not_settle_an_earlier_attempt() -> None:
    line = unconfirmed(1)
    batch = line.batches[0]
    line.sent(batch)  # No answer.
    line.sent(batch)
    line.answered(batch, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert batch.may_be_written


def test_the_numbers_of_a_batch_that_was_never_written_are_used_again() -> None:
    line = unconfirmed(3, 2)
    line.abandon(line.batches[0])
    assert numbers(line) == [(7, 1, 100)]


def test_after_a_batch_that_may_be_written_the_next_one_begins_an_epoch() -> None:
    line = unconfirmed(3, 2)
    line.sent(line.batches[0])
    line.abandon(line.batches[0])
    assert numbers(line) == [(7, 2, 0)]


@dataclass(slots=True, eq=False, kw_only=True)
class Named(OutgoingBatch):
    records: list[int]


@dataclass
class Log:
    """A partition's leader, as far as it knows producers."""

    records: list[int] = field(default_factory=list)
    known: dict[int, tuple[int, int]] = field(default_factory=dict)  # Epoch, next sequence.
    last: dict[int, set[tuple[Numbers, int]]] = field(default_factory=dict)

    def append(self, batch: Named) -> ErrorCode:
        producer_id, epoch, sequence = batch.numbers
        known_epoch, expected = self.known.get(producer_id, (epoch, sequence))
        if (batch.numbers, batch.count) in self.last.setdefault(producer_id, set()):
            return ErrorCode.NONE
        if epoch < known_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if sequence != (expected if epoch == known_epoch else 0):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.known[producer_id] = epoch, sequence + batch.count
        self.last[producer_id].add((batch.numbers, batch.count))
        self.records += batch.records
        return ErrorCode.NONE


class Partition:
    """Sends batches, several at a time while all goes well, as Spark's sink does."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.log = Log()
        self.line: Unconfirmed[Named] = Unconfirmed(Identity(1, 0))
        self.confirmed: list[int] = []
        self.lost: list[int] = []
        self.identities = 1

    def attempt(self, batch: Named) -> ClientError | None:
        if self.line.identity is None:
            self.identities += 1
            self.line.identify(Identity(self.identities, 0))
        fate = self.data.draw(st.sampled_from(FATES))
        self.line.sent(batch)
        if fate == "never arrives":
            return LOST
        code = fate if isinstance(fate, ErrorCode) else self.log.append(batch)
        if fate == "no answer":
            return LOST
        if fate == "deposed" and code == ErrorCode.NONE:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.line.answered(batch, code):
            self.confirmed += batch.records
            return None
        return Refused(code)

    def recover(self) -> None:
        attempts = 0
        while self.line.batches:
            batch = self.line.batches[0]
            failure = self.attempt(batch)
            if failure is None:
                continue
            attempts += 1
            verdict = self.line.failed(batch, failure)
            if verdict is Verdict.SPLIT:
                middle = batch.count // 2
                parts = batch.records[:middle], batch.records[middle:]
                self.line.split(*(Named(count=len(part), records=part) for part in parts))
            elif verdict is Verdict.FAILED or attempts > 8:
                for each in list(self.line.batches):
                    if each is batch or each.may_be_written:
                        self.line.abandon(each)
                        self.lost += each.records


FATES = [
    *("written", "never arrives", "no answer", "deposed"),
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,  # Of a leader that was deposed.
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
]


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), max_size=5), st.data())
def test_records_are_written_once_and_in_order(
    rounds: list[list[int]], data: st.DataObject
) -> None:
    partition = Partition(data)
    next_record = 0
    for counts in rounds:
        for count in counts if partition.line.is_known else counts[:1]:
            records = list(range(next_record, next_record + count))
            next_record += count
            partition.line.add(Named(count=count, records=records))
        failures = [partition.attempt(batch) for batch in list(partition.line.batches)]
        if any(failures):
            partition.recover()
        assert not partition.line.batches
    written = partition.log.records
    assert written == sorted(set(written))
    assert set(partition.confirmed) <= set(written)
    assert sorted(partition.confirmed + partition.lost) == list(range(next_record))
