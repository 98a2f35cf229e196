import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.records.batch import SEQUENCE_MAX, Batch
from ottla.records.record import BadRecords, Record, build_batch
from ottla.storage.producer_state import Duplicate, Producers, read_marker
from tests.unit.storage.making import NOW, make_batch, make_marker

DAY_MS = 86_400_000


def accept(
    producers: Producers, sequence: int, *, count: int = 1, offset: int, **more: int
) -> None:
    batch = make_batch(count, producer_id=1, sequence=sequence, **more)
    batch.base_offset = offset
    producers.accept(batch, is_client=True)


def after(*sequences: int, epoch: int = 0) -> Producers:
    """Producer 1 wrote one-record batches with these sequences at offsets 0, 1, 2 …"""
    producers = Producers()
    for offset, sequence in enumerate(sequences):
        accept(producers, sequence, offset=offset, epoch=epoch)
    producers.keep()
    return producers


def code_of(producers: Producers, sequence: int, **more: int) -> ErrorCode:
    with pytest.raises(Refusal) as caught:
        accept(producers, sequence, offset=99, **more)
    return caught.value.code


def test_sequences_go_on_by_one() -> None:
    producers = after(0, 1, 2)
    assert producers.by_id[1].last_sequence == 2
    assert code_of(producers, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_nobody_remembers_may_start_anywhere() -> None:
    assert after(17).by_id[1].last_sequence == 17


@pytest.mark.parametrize("sequence", [3, 4, 5, 6, 7])
def test_each_of_the_last_five_batches_is_known_again(sequence: int) -> None:
    with pytest.raises(Duplicate) as caught:
        accept(after(*range(8)), sequence, offset=99)
    assert caught.value.base_offset == sequence


def test_the_sixth_batch_back_is_out_of_order() -> None:
    assert code_of(after(*range(8)), 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_must_cover_the_same_sequences() -> None:
    assert code_of(after(0, 1), 1, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_tells_the_offset_of_a_batch_of_many() -> None:
    producers = Producers()
    accept(producers, 0, count=10, offset=50)
    with pytest.raises(Duplicate) as caught:
        accept(producers, 0, count=10, offset=99)
    assert (caught.value.base_offset, caught.value.log_append_time) == (50, NOW + 9)


def test_sequences_wrap_to_zero() -> None:
    producers = after(SEQUENCE_MAX - 1, SEQUENCE_MAX)
    accept(producers, 0, offset=2)
    assert producers.by_id[1].last_sequence == 0
    with pytest.raises(Duplicate):
        accept(producers, SEQUENCE_MAX, offset=9)


def test_a_batch_may_wrap_in_the_middle() -> None:
    producers = after(SEQUENCE_MAX - 2)
    accept(producers, SEQUENCE_MAX - 1, count=4, offset=1)
    assert producers.by_id[1].last_sequence == 1
    with pytest.raises(Duplicate) as caught:
        accept(producers, SEQUENCE_MAX - 1, count=4, offset=99)
    assert caught.value.base_offset == 1


def test_a_new_epoch_starts_at_zero() -> None:
    producers = after(0, 1)
    assert code_of(producers, 2, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(producers, 0, offset=2, epoch=1)
    assert producers.by_id[1].epoch == 1
    assert len(producers.by_id[1].batches) == 1


def test_an_older_epoch_is_refused() -> None:
    assert code_of(after(0, epoch=5), 1, epoch=4) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_what_was_noted_can_be_taken_back() -> None:
    producers = after(0)
    accept(producers, 1, offset=1)
    accept(producers, 2, offset=2)
    other = make_batch(producer_id=2, is_transactional=True)
    producers.accept(other, is_client=True)
    assert producers.noted == 3
    assert producers.as_of(1)[1].last_sequence == 1
    assert 2 not in producers.as_of(2)
    producers.take_back()
    assert set(producers.by_id) == {1}
    assert producers.by_id[1].last_sequence == 0
    assert producers.ongoing == {}


def test_idle_producers_expire_but_open_transactions_do_not() -> None:
    producers = after(0)
    producers.note(make_batch(producer_id=2, is_transactional=True))
    producers.expire(NOW + DAY_MS - 1, DAY_MS)
    assert set(producers.by_id) == {1, 2}
    producers.expire(NOW + DAY_MS, DAY_MS)
    assert set(producers.by_id) == {2}


def transaction(producers: Producers, producer_id: int, offset: int) -> None:
    batch = make_batch(producer_id=producer_id, is_transactional=True)
    batch.base_offset = offset
    producers.accept(batch, is_client=True)


def end(producers: Producers, producer_id: int, offset: int, *, is_abort: bool) -> int | None:
    """Write the marker; the last stable offset that the transaction index gets."""
    marker = make_marker(producer_id, is_abort=is_abort)
    marker.base_offset = offset
    completed = producers.accept(marker, is_client=False)
    if completed is None:
        return None
    assert completed.is_aborted == is_abort
    stable = producers.stable_offset_after(completed)
    producers.complete(completed)
    return stable


def test_the_first_open_transaction_holds_the_stable_offset() -> None:
    producers = Producers()
    transaction(producers, 1, 10)
    transaction(producers, 2, 20)
    assert producers.first_unstable_offset(100) == 10
    assert end(producers, 1, 30, is_abort=True) == 20
    assert producers.first_unstable_offset(30) == 10  # The marker is not replicated yet.
    assert producers.first_unstable_offset(31) == 20
    assert end(producers, 2, 40, is_abort=False) == 41
    assert producers.first_unstable_offset(41) is None


def test_a_marker_of_nothing_completes_nothing() -> None:
    assert end(Producers(), 1, 5, is_abort=True) is None


def test_a_completed_transaction_is_open_again_when_its_marker_is_taken_back() -> None:
    producers = Producers()
    transaction(producers, 1, 10)
    producers.keep()
    end(producers, 1, 20, is_abort=True)
    producers.take_back()
    assert producers.first_unstable_offset(100) == 10


def test_a_plain_batch_within_a_transaction_is_refused() -> None:
    producers = Producers()
    transaction(producers, 1, 0)
    assert code_of(producers, 1) == ErrorCode.INVALID_TXN_STATE


def test_an_old_coordinator_is_fenced() -> None:
    producers = Producers()
    transaction(producers, 1, 0)
    producers.accept(make_marker(1, is_abort=True, coordinator_epoch=5), is_client=False)
    with pytest.raises(Refusal) as caught:
        producers.accept(make_marker(1, is_abort=True, coordinator_epoch=4), is_client=False)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_with_a_new_epoch_makes_the_next_batch_start_at_zero() -> None:
    producers = Producers()
    transaction(producers, 1, 0)
    producers.accept(make_marker(1, is_abort=True, epoch=1), is_client=False)
    assert code_of(producers, 1, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(producers, 0, offset=9, epoch=1)


def test_a_coordinators_batch_has_no_sequence_to_check() -> None:
    producers = after(0, 1)
    batch = make_batch(producer_id=1, sequence=77)
    producers.accept(batch, is_client=False)
    assert producers.by_id[1].last_sequence == 77


def test_a_marker_that_is_none_is_noticed() -> None:
    bad = Batch(build_batch([Record(0, NOW, b"x", b"y")], is_control=True, producer_id=1))
    with pytest.raises(BadRecords):
        read_marker(bad)
    empty = Batch(build_batch([], base_offset=4, is_control=True, producer_id=1))
    assert read_marker(empty) is None
