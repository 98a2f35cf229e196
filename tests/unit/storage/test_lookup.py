import pytest

from ottla.model.errors import Damaged
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from ottla.storage.log import Log
from tests.unit.storage.making import NOW, make_batch, make_disk, open_log, put

# In a log, timestamps need not grow.
TIMESTAMPS = [5, 3, 9, 9, 2, 20, 11, 20, 1, 15, 30, 4, 4, 25]


def make_log(timestamps: list[int]) -> Log:
    log = open_log(make_disk())
    for timestamp in timestamps:
        records = [Record(0, NOW + timestamp, None, b"v" * 60), Record(1, NOW, None, b"w" * 60)]
        put(log, Batch(build_batch(records, codec=timestamp % 5)))
    return log


@pytest.mark.parametrize("target", range(0, 32))
def test_the_first_record_that_is_late_enough_is_found(target: int) -> None:
    log = make_log(TIMESTAMPS)
    assert len(log.segments) > 2
    expected = next((2 * i for i, t in enumerate(TIMESTAMPS) if t >= target), None)
    found = log.find_by_timestamp(NOW + target)
    assert (found.offset if found else None) == expected


def test_records_below_the_start_of_the_log_are_not_found() -> None:
    log = make_log(TIMESTAMPS)
    log.advance_log_start(5)
    found = log.find_by_timestamp(NOW + 5)
    assert found is not None
    assert found == (NOW + 9, 6, 0)


def test_the_greatest_timestamp_is_that_of_its_first_record() -> None:
    assert make_log(TIMESTAMPS).max_timestamp() == (NOW + 30, 20, 0)
    assert make_log([7, 7, 3]).max_timestamp() == (NOW + 7, 0, 0)


def test_a_log_without_records_has_none() -> None:
    log = open_log(make_disk())
    assert log.max_timestamp() is None
    assert log.find_by_timestamp(0) is None


def test_append_time_belongs_to_the_whole_batch() -> None:
    log = open_log(make_disk())
    batch = make_batch(3)
    batch.stamp_append_time(NOW + 50)
    put(log, batch)
    assert log.max_timestamp() == (NOW + 50, 2, 0)
    assert log.find_by_timestamp(NOW + 10) == (NOW + 50, 0, 0)


def test_records_that_cannot_be_read_are_damage() -> None:
    log = open_log(make_disk())
    batch = make_batch()
    batch.data[61] = 2
    batch.seal()
    put(log, batch)
    with pytest.raises(Damaged):
        log.find_by_timestamp(NOW)
