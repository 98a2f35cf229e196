import pytest

from ottla.client.unpacking import Transactions
from ottla.records.record import CONTROL_KEY, Record, build_batch
from ottla.spark.arrow.batch_scan import scan
from ottla.spark.errors import Unreadable
from tests.unit.spark.making import joined, records

ABORT, COMMIT = 0, 1


def transactional(first: int, count: int, producer_id: int) -> bytearray:
    return build_batch(
        records(first, count),
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(offset: int, producer_id: int, kind: int) -> bytearray:
    return build_batch(
        [Record(offset, 0, CONTROL_KEY.pack(0, kind), b"\0\0\0\0\0\0")],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def seen(data: bytes | bytearray, transactions: Transactions | None, offset: int = 0) -> list[int]:
    return [item.batch.base_offset for item in scan("t-0", data, offset, 1000, transactions).placed]


def test_whole_batches_are_found_and_the_cut_one_is_left() -> None:
    data = joined([records(0, 5), records(5, 5), records(10, 5)])
    found = scan("t-0", data[:-1], 0, 100, None)
    assert [item.batch.base_offset for item in found.placed] == [0, 5]
    assert found.next_offset == 10
    assert scan("t-0", b"", 7, 100, None).next_offset == 7


def test_batches_outside_of_the_range_are_passed_over() -> None:
    data = joined([records(0, 5), records(5, 5), records(10, 5)])
    found = scan("t-0", data, 6, 10, None)
    assert [item.batch.base_offset for item in found.placed] == [5]
    assert found.next_offset == 15


def test_markers_give_no_rows_and_advance_the_offset() -> None:
    data = transactional(0, 3, 7) + marker(3, 7, COMMIT)
    assert seen(data, None) == [0]
    assert scan("t-0", data, 0, 100, None).next_offset == 4
    assert scan("t-0", marker(3, 7, COMMIT), 3, 4, None).next_offset == 4


def test_aborted_transactions_are_hidden_only_if_asked_so() -> None:
    data = (
        transactional(0, 3, 7)
        + transactional(3, 2, 8)
        + marker(5, 7, ABORT)
        + marker(6, 8, COMMIT)
        + transactional(7, 2, 7)
        + marker(9, 7, COMMIT)
        + joined([records(10, 2)])
    )
    assert seen(data, None) == [0, 3, 7, 10]
    assert seen(data, Transactions([(7, 0)])) == [3, 7, 10]


def test_a_wrong_checksum_is_told_with_its_place() -> None:
    data = joined([records(0, 5), records(5, 5)])
    data[-1] ^= 1
    with pytest.raises(Unreadable, match="t-0 holds a batch at offset 5 whose checksum"):
        scan("t-0", data, 0, 100, None)


def test_an_old_record_format_is_refused() -> None:
    data = joined([records(0, 1)])
    data[16] = 1
    with pytest.raises(Unreadable, match="a batch of format 1"):
        scan("t-0", data, 0, 100, None)
