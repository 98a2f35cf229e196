from ottla.client.idempotence import Numbers
from ottla.model.types import TopicPartition
from ottla.records.batch import Batch as View
from ottla.records.record import build_batch, read_records
from ottla.spark.sink.batches import Batch, halves
from tests.unit.spark.sink_world import numbered

PLACE = TopicPartition("t", 0)


def sealed(count: int) -> Batch:
    data = build_batch(numbered(count), codec=4, producer_id=7, producer_epoch=1, base_sequence=9)
    return Batch(place=PLACE, data=data, count=count, numbers=Numbers(7, 1, 9))


def contents(batch: Batch) -> list[bytes | None]:
    return [record.value for record in read_records(View(batch.data), 1 << 20)]


def test_halves_hold_the_same_records() -> None:
    first, second = halves(sealed(5), codec=4)
    assert contents(first) + contents(second) == [b"0", b"1", b"2", b"3", b"4"]
    assert (first.count, second.count) == (2, 3)
    for half in (first, second):
        assert half.place == PLACE
        assert View(half.data).is_valid
        assert View(half.data).base_offset == 0
