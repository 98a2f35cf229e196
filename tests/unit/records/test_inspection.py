import tracemalloc

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.records.admission import AdmissionPolicy
from ottla.records.batch import Batch
from ottla.records.compression import compress
from ottla.records.inspection import RECORD_ERRORS_MAX, InvalidRecords, inspect
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


def test_millions_of_records_in_a_small_batch_are_not_kept() -> None:
    one = build_batch([Record(0, NOW, b"", None)])[61:]
    count = 20_000
    packed = compress(4, bytes(one) * count)
    data = build_batch([Record(0, NOW, b"", None)], codec=4)
    assert len(packed) < 10_000
    data[61:] = packed
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[23:27] = (count - 1).to_bytes(4, "big")
    data[57:61] = count.to_bytes(4, "big")
    batch = Batch(data)
    batch.seal()
    tracemalloc.start()
    try:
        rebuilt = inspect(batch, AdmissionPolicy(compression_type="lz4", is_compacted=True), NOW)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(one) * count
    finally:
        tracemalloc.stop()
    assert (rebuilt.count, rebuilt.codec, rebuilt.is_valid) == (count, 3, True)


def test_not_every_error_of_a_hopeless_batch_is_told() -> None:
    batch = Batch(build_batch([Record(i, NOW, None, b"") for i in range(2 * RECORD_ERRORS_MAX)]))
    with pytest.raises(InvalidRecords) as caught:
        inspect(batch, AdmissionPolicy(is_compacted=True), NOW)
    assert len(caught.value.record_errors) == RECORD_ERRORS_MAX
