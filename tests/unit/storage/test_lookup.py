import tracemalloc
from dataclasses import replace

import pytest

from ottla.model.errors import Damaged
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from ottla.records.scan import ScanBudget
from ottla.storage.log import Log
from ottla.storage.lookup import (
    FALSE_HEADERS_MAX,
    HEADERS_PER_STEP,
    FirstAt,
    TimestampSearch,
)
from tests.unit.storage.making import (
    LOOKUP_BYTES_MAX,
    NOW,
    SMALL,
    find_by_timestamp,
    finish_search,
    make_batch,
    make_disk,
    max_timestamp,
    open_log,
    put,
)

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
    found = find_by_timestamp(log, NOW + target)
    assert (found.offset if found else None) == expected


def test_records_below_the_start_of_the_log_are_not_found() -> None:
    log = make_log(TIMESTAMPS)
    log.advance_log_start(5)
    found = find_by_timestamp(log, NOW + 5)
    assert found is not None
    assert found == (NOW + 9, 6, 0)


def test_the_greatest_timestamp_is_that_of_its_first_record() -> None:
    assert max_timestamp(make_log(TIMESTAMPS)) == (NOW + 30, 20, 0)
    assert max_timestamp(make_log([7, 7, 3])) == (NOW + 7, 0, 0)


def test_a_log_without_records_has_none() -> None:
    log = open_log(make_disk())
    assert max_timestamp(log) is None
    assert find_by_timestamp(log, 0) is None


def test_append_time_belongs_to_the_whole_batch() -> None:
    log = open_log(make_disk())
    batch = make_batch(3)
    batch.stamp_append_time(NOW + 50)
    put(log, batch)
    assert max_timestamp(log) == (NOW + 50, 2, 0)
    assert find_by_timestamp(log, NOW + 10) == (NOW + 50, 0, 0)


def unreadable() -> Batch:
    batch = make_batch()
    batch.data[61] = 2
    batch.seal()
    return batch


def test_a_batch_with_unreadable_records_is_found_by_its_first_offset() -> None:
    log = open_log(make_disk())
    put(log, make_batch(timestamp=NOW - 10))
    put(log, unreadable())
    assert find_by_timestamp(log, NOW) == (NOW, 1, 0)
    assert max_timestamp(log) == (NOW, 1, 0)


def test_unreadable_records_with_a_wrong_checksum_are_damage() -> None:
    log = open_log(make_disk())
    batch = unreadable()
    batch.data[17] ^= 1
    put(log, batch)
    with pytest.raises(Damaged):
        find_by_timestamp(log, NOW)


def test_records_that_unfold_beyond_the_cap_are_found_by_the_first_offset() -> None:
    log = open_log(make_disk())
    records = [Record(i, NOW + i, None, bytes(1000)) for i in range(10)]
    put(log, Batch(build_batch(records, codec=4)))
    assert finish_search(TimestampSearch(log, NOW + 5, 20_000)) == (NOW + 5, 5, 0)
    assert finish_search(TimestampSearch(log, NOW + 5, 5_000)) == (NOW + 9, 0, 0)


def false_header(timestamp: int) -> Batch:
    """Its header promises a later record than it has."""
    batch = make_batch(timestamp=timestamp)
    batch.set_max_timestamp(timestamp + 1000)
    return batch


def test_a_search_passes_few_headers_that_promise_too_much() -> None:
    log = open_log(make_disk())
    for _ in range(FALSE_HEADERS_MAX):
        put(log, false_header(NOW))
    put(log, make_batch(timestamp=NOW + 500))
    assert find_by_timestamp(log, NOW + 500) == (NOW + 500, FALSE_HEADERS_MAX, 0)


def test_a_search_ends_at_the_first_offset_after_too_many_false_headers() -> None:
    log = open_log(make_disk())
    for _ in range(3 * FALSE_HEADERS_MAX):
        put(log, false_header(NOW))
    assert find_by_timestamp(log, NOW + 500) == (NOW + 1000, FALSE_HEADERS_MAX, 0)


def test_others_are_served_while_many_headers_are_passed() -> None:
    config = replace(SMALL, segment_bytes=1 << 20, index_interval_bytes=1 << 20)
    log = open_log(make_disk(), config)
    for _ in range(2 * HEADERS_PER_STEP):
        put(log, make_batch(timestamp=NOW))
    put(log, make_batch(timestamp=NOW + 1))
    steps = list(TimestampSearch(log, NOW + 1, LOOKUP_BYTES_MAX).steps())
    assert steps[:2] == [None, None]
    assert find_by_timestamp(log, NOW + 1) == (NOW + 1, 2 * HEADERS_PER_STEP, 0)


def test_a_search_goes_on_where_the_log_starts_by_then() -> None:
    log = make_log(TIMESTAMPS)
    search = TimestampSearch(log, NOW + 20, LOOKUP_BYTES_MAX)
    steps = search.steps()
    scan = next(steps)
    assert scan is not None
    log.advance_log_start(14)  # The scan is not done: its batch is passed over.
    scan = next(steps)
    assert scan is not None
    assert scan.run_within(ScanBudget(10**9))
    assert list(steps) == []
    assert search.found == (NOW + 20, 14, 0)


def test_a_scan_for_a_time_keeps_no_headers_and_counts_them() -> None:
    count = 300_000
    headers = (("", None),) * count
    records = [Record(0, NOW, None, b"", headers), Record(1, NOW + 5, None, b"")]
    batch = Batch(build_batch(records, codec=4))
    del headers, records
    scan = FirstAt(batch, LOOKUP_BYTES_MAX, timestamp=NOW + 5, start=0)
    assert not scan.run_within(ScanBudget(10_000))
    tracemalloc.start()
    try:
        list(scan.steps())
        assert tracemalloc.get_traced_memory()[1] < 10 * 2 * count
    finally:
        tracemalloc.stop()
    assert scan.found is not None
    assert scan.found.offset == 1
