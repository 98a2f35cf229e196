from ottla.model.types import TopicPartition
from ottla.records.batch import SEQUENCE_MAX
from ottla.records.batch import Batch as View
from ottla.records.record import build_batch, read_records
from ottla.spark.arrow.encoding import Producer
from ottla.spark.sink.batches import Batch, halves, renumber
from tests.unit.spark.sink_world import numbered

PLACE = TopicPartition("t", 0)


def sealed(count: int, sequence: int) -> Batch:
    data = build_batch(
        numbered(count), codec=4, producer_id=7, producer_epoch=1, base_sequence=sequence
    )
    return Batch(PLACE, data, count, sequence)


def contents(batch: Batch) -> list[bytes | None]:
    return [record.value for record in read_records(View(batch.data), 1 << 20)]


def test_halves_hold_the_same_records_under_the_same_numbers() -> None:
    first, second = halves(sealed(5, 100), codec=4)
    assert contents(first) + contents(second) == [b"0", b"1", b"2", b"3", b"4"]
    assert (first.count, second.count) == (2, 3)
    for half, sequence in ((first, 100), (second, 102)):
        view = View(half.data)
        assert view.is_valid
        assert (view.producer_id, view.producer_epoch) == (7, 1)
        assert view.base_sequence == half.base_sequence == sequence
        assert view.base_offset == 0


def test_halves_of_a_batch_that_may_be_written_may_be_written() -> None:
    batch = sealed(4, 100)
    batch.unanswered = 1
    assert [half.unanswered for half in halves(batch, codec=0)] == [1, 1]


def test_numbers_begin_again_after_the_largest() -> None:
    _, second = halves(sealed(4, SEQUENCE_MAX - 1), codec=0)
    assert second.base_sequence == 0


def test_a_batch_is_renumbered_in_place() -> None:
    batch = sealed(3, 100)
    renumber(batch, Producer(9, 4, 0))
    view = View(batch.data)
    assert view.is_valid
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (9, 4, 0)
    assert contents(batch) == [b"0", b"1", b"2"]
