import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.records.admission import AdmissionPolicy
from ottla.records.batch import Batch
from ottla.records.inspection import InvalidRecords, inspect
from ottla.records.record import Record, build_batch, read_records

NOW = WallTime(1_700_000_000_000)
FULL = AdmissionPolicy(full_validation=True)


def test_the_header_takes_its_greatest_timestamp_from_the_records() -> None:
    batch = Batch(build_batch([Record(0, NOW, None, b"a"), Record(1, NOW - 5, None, b"b")]))
    batch.set_max_timestamp(NOW - 1000)
    inspected = inspect(batch, FULL, NOW)
    assert inspected.max_timestamp == NOW
    assert inspected.is_valid


def test_records_out_of_order_are_numbered_anew() -> None:
    odd = [Record(0, NOW, b"a", b"1"), Record(2, NOW, b"b", b"2"), Record(3, NOW, b"c", b"3")]
    batch = Batch(build_batch(odd, base_offset=0, last_offset=2, codec=1))
    inspected = inspect(batch, FULL, NOW)
    assert [record.offset for record in read_records(inspected, 10_000)] == [0, 1, 2]
    assert inspected.codec == 1


def test_data_that_is_not_what_its_codec_says_is_refused() -> None:
    data = build_batch([Record(0, NOW, None, b"x" * 100)], codec=4)
    data[61:70] = b"not zstd!"
    with pytest.raises(Refusal) as caught:
        inspect(Batch(data), FULL, NOW)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_a_refusal_shows_three_errors_at_most_and_keeps_all() -> None:
    refusal = InvalidRecords(
        ErrorCode.INVALID_RECORD, [(index, f"error {index}") for index in range(5)]
    )
    assert refusal.message is not None
    assert "5 record errors" in refusal.message
    assert "error 2" in refusal.message
    assert "error 3" not in refusal.message
    assert len(refusal.record_errors) == 5
