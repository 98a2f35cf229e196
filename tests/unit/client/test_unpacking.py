"""From the bytes of a fetch to messages."""

import pytest

from ottla.client.unpacking import CorruptBatch, Transactions, unpack
from ottla.model.types import TopicPartition
from ottla.protocol.control_records import ControlType, EndTxnMarker, encode_control
from ottla.records.record import Record, build_batch

PLACE = TopicPartition("t", 0)


def batch(start: int, *values: str, **options: int) -> bytes:
    records = [
        Record(start + index, 1000 + index, None, value.encode())
        for index, value in enumerate(values)
    ]
    return bytes(build_batch(records, **options))


def marker(offset: int, kind: ControlType, producer_id: int) -> bytes:
    key, value = encode_control(kind, EndTxnMarker(0))
    record = Record(offset, 1000, key, value)
    return bytes(
        build_batch(
            [record],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


def values(data: bytes, offset: int = 0, aborted: list[tuple[int, int]] | None = None) -> list[str]:
    transactions = None if aborted is None else Transactions(aborted)
    messages, _ = unpack(PLACE, data, offset=offset, transactions=transactions)
    return [(message.value or b"").decode() for message in messages]


def test_records_before_the_offset_asked_for_are_left_out() -> None:
    messages, position = unpack(PLACE, batch(10, "a", "b", "c"), offset=11)
    assert [(m.offset, m.value) for m in messages] == [(11, b"b"), (12, b"c")]
    assert position == 13


def test_a_batch_that_was_cut_is_left_for_the_next_fetch() -> None:
    data = batch(0, "a") + batch(1, "b", "c")
    messages, position = unpack(PLACE, data[:-5], offset=0)
    assert [m.value for m in messages] == [b"a"]
    assert position == 1
    assert unpack(PLACE, data[:7], offset=0) == ([], 0)
    assert unpack(PLACE, None, offset=4) == ([], 4)


def test_a_gap_left_by_compaction_is_passed() -> None:
    data = bytes(build_batch([Record(3, 0, None, b"x")], base_offset=0, last_offset=9))
    messages, position = unpack(PLACE, data, offset=0)
    assert [m.offset for m in messages] == [3]
    assert position == 10


def test_bytes_that_were_changed_are_never_shown() -> None:
    data = bytearray(batch(5, "a"))
    data[-2] ^= 1
    with pytest.raises(CorruptBatch, match="t-0 holds a batch at offset 5"):
        unpack(PLACE, bytes(data), offset=0)


def test_a_batch_of_another_format_is_refused() -> None:
    data = bytearray(batch(0, "a"))
    data[16] = 1
    with pytest.raises(CorruptBatch, match="format 1"):
        values(bytes(data))


def test_the_time_of_a_batch_stamped_by_the_broker_is_the_brokers() -> None:
    data = batch(0, "a", append_time=777)
    (message,), _ = unpack(PLACE, data, offset=0)
    assert (message.timestamp_ms, message.is_log_append_time) == (777, True)


def test_control_records_are_passed_and_counted() -> None:
    data = batch(0, "a", producer_id=7, is_transactional=True) + marker(1, ControlType.COMMIT, 7)
    messages, position = unpack(PLACE, data, offset=0)
    assert [m.value for m in messages] == [b"a"]
    assert position == 2


def test_an_aborted_transaction_is_hidden_until_its_marker() -> None:
    data = b"".join(
        [
            batch(0, "kept", producer_id=8, is_transactional=True),
            batch(1, "gone", producer_id=7, is_transactional=True),
            batch(2, "plain"),
            batch(3, "gone too", producer_id=7, is_transactional=True),
            marker(4, ControlType.ABORT, 7),
            batch(5, "a new transaction", producer_id=7, is_transactional=True),
            marker(6, ControlType.COMMIT, 7),
            marker(7, ControlType.COMMIT, 8),
        ]
    )
    assert values(data, aborted=[(7, 1)]) == ["kept", "plain", "a new transaction"]
    assert values(data) == ["kept", "gone", "plain", "gone too", "a new transaction"]


def test_an_abort_that_begins_before_the_fetch_hides_from_its_start() -> None:
    data = batch(3, "gone", producer_id=7, is_transactional=True) + batch(4, "kept")
    assert values(data, offset=3, aborted=[(7, 1)]) == ["kept"]


def test_two_aborts_of_one_producer_are_told_apart() -> None:
    data = b"".join(
        [
            batch(0, "gone", producer_id=7, is_transactional=True),
            marker(1, ControlType.ABORT, 7),
            batch(2, "kept", producer_id=7, is_transactional=True),
            marker(3, ControlType.COMMIT, 7),
            batch(4, "gone again", producer_id=7, is_transactional=True),
            marker(5, ControlType.ABORT, 7),
        ]
    )
    assert values(data, aborted=[(7, 4), (7, 0)]) == ["kept"]
