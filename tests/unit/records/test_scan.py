from collections.abc import Iterator

import pytest

from ottla.records.batch import Batch
from ottla.records.compression import compress
from ottla.records.record import BadRecords, Oversized, Record, build_batch
from ottla.records.record_spans import HEADERS_PAUSE_US, HEADERS_PER_PAUSE, RECORDS_PER_STEP, skim
from ottla.records.scan import (
    DECOMPRESSED_BYTES_PER_US,
    STEP_US,
    BatchScan,
    Larger,
    ScanBudget,
)
from tests.cpu import cpu_seconds

BYTES_MAX = 1 << 20
PLENTY_US = 10**9


class Counting(BatchScan):
    def __init__(self, batch: Batch, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(batch, bytes_max)
        self.count = 0
        self.failure: BadRecords | None = None

    def _walk(self, data: bytes) -> Iterator[int]:
        self.count = 0
        for record in skim(self.batch, data):
            if isinstance(record, int):
                yield record
            else:
                self.count += 1

    def _failed(self, failure: BadRecords) -> None:
        self.failure = failure


def make_batch(count: int, codec: int = 4) -> Batch:
    return Batch(build_batch([Record(i, 0, b"k", b"") for i in range(count)], codec=codec))


def bomb(size: int, codec: int) -> Batch:
    """One record that decompresses to a little more than `size` bytes."""
    return Batch(build_batch([Record(0, 0, None, bytes(size))], codec=codec))


@pytest.mark.parametrize("codec", range(5))
def test_a_scan_within_the_budget_is_done_at_once(codec: int) -> None:
    scan, budget = Counting(make_batch(100, codec)), ScanBudget(1000)
    assert scan.run_within(budget)
    assert scan.count == 100
    assert budget.left_us < 1000


@pytest.mark.parametrize("codec", range(1, 5))
def test_decompressed_bytes_are_taken_from_the_budget(codec: int) -> None:
    budget = ScanBudget(2000)
    assert Counting(bomb(64 << 10, codec)).run_within(budget)
    assert budget.left_us <= 2000 - (64 << 10) // DECOMPRESSED_BYTES_PER_US


@pytest.mark.parametrize("codec", range(5))
def test_a_scan_of_too_many_records_is_left_to_its_steps(codec: int) -> None:
    scan, budget = Counting(make_batch(2 * RECORDS_PER_STEP, codec)), ScanBudget(5000)
    assert not scan.run_within(budget)
    assert (scan.count, budget.left_us) == (0, 5000)
    counts = [scan.count for _ in scan.steps()]
    assert counts == [0, RECORDS_PER_STEP, 2 * RECORDS_PER_STEP]


@pytest.mark.parametrize("codec", range(1, 5))
def test_a_batch_that_decompresses_beyond_the_budget_uses_it_up_and_is_left(codec: int) -> None:
    scan, budget = Counting(bomb(BYTES_MAX // 2, codec)), ScanBudget(2000)
    assert not scan.run_within(budget)
    assert budget.left_us == 0
    assert list(scan.steps()) == [None]
    assert scan.count == 1


@pytest.mark.parametrize("codec", range(1, 5))
def test_a_batch_that_decompresses_beyond_the_limit_fails_both_ways(codec: int) -> None:
    for run in (lambda scan: scan.run_within(ScanBudget(PLENTY_US)), lambda scan: [*scan.steps()]):
        scan = Counting(bomb(BYTES_MAX, codec))
        run(scan)
        assert isinstance(scan.failure, Oversized)


@pytest.mark.parametrize("codec", range(1, 5))
def test_the_attempt_at_a_bomb_within_a_turns_budget_takes_little_time(codec: int) -> None:
    batch = bomb(32 << 20, codec)
    seconds = cpu_seconds(lambda: Counting(batch, 64 << 20).run_within(ScanBudget(10_000)))
    assert seconds < 0.05


def test_a_million_records_in_a_small_batch_take_no_time_within_a_budget() -> None:
    one = make_batch(1, codec=0)
    batch = make_batch(1)
    batch.count = 1_000_000
    batch.data = bytes(batch.data[:61]) + compress(4, bytes(one.body) * batch.count)
    batch.size = len(batch.data)
    budget = ScanBudget(10_000)
    assert not Counting(batch, 64 << 20).run_within(budget)
    assert budget.left_us == 10_000


def header_bomb(count: int, codec: int = 4) -> Batch:
    """One record with `count` headers of two bytes."""
    headers = (("", None),) * count
    return Batch(build_batch([Record(0, 0, b"k", None, headers)], codec=codec))


@pytest.mark.parametrize("codec", [0, 4])
def test_headers_are_taken_from_the_budget(codec: int) -> None:
    batch, budget = header_bomb(10 * HEADERS_PER_PAUSE, codec), ScanBudget(10_000)
    assert Counting(batch).run_within(budget)
    assert budget.left_us <= 10_000 - 10 * HEADERS_PAUSE_US


@pytest.mark.parametrize("codec", [0, 4])
def test_a_record_of_very_many_headers_takes_the_budget_and_is_left_to_steps(codec: int) -> None:
    scan, budget = Counting(header_bomb(500_000, codec), 64 << 20), ScanBudget(10_000)
    estimate = scan.cost_us
    assert not scan.run_within(budget)
    again = Counting(header_bomb(500_000, codec), 64 << 20)
    assert cpu_seconds(lambda: again.run_within(ScanBudget(10_000))) < 0.05
    assert (scan.count, budget.left_us) == (0, 0)
    assert scan.cost_us > 9000 > estimate  # A second attempt is estimated higher.
    assert len(list(scan.steps())) >= 500_000 // HEADERS_PER_PAUSE * HEADERS_PAUSE_US // STEP_US
    assert scan.count == 1


@pytest.mark.parametrize("codec", range(1, 5))
def test_steps_with_a_lower_limit_raise_larger_before_any_work(codec: int) -> None:
    scan = Counting(bomb(BYTES_MAX // 2, codec))
    with pytest.raises(Larger):
        list(scan.steps(BYTES_MAX // 4))
    assert (scan.count, scan.failure) == (0, None)
    assert list(scan.steps(2 * BYTES_MAX)) == [None]
    assert scan.count == 1
