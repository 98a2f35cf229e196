import tracemalloc

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.records.admission import AdmissionPolicy
from ottla.records.batch import LOG_APPEND_TIME, Batch
from ottla.records.compression import compress
from ottla.records.inspection import RECORD_ERRORS_MAX, Inspection, InvalidRecords
from ottla.records.record import Record, build_batch, read_records, records_in
from ottla.records.scan import ScanBudget

NOW = WallTime(1_700_000_000_000)
FULL = AdmissionPolicy(full_validation=True)


def inspect(batch: Batch, policy: AdmissionPolicy, now: WallTime) -> Batch:
    inspection = Inspection(batch, policy, now)
    assert inspection.run_within(ScanBudget(10**9))
    return inspection.batch


def test_the_header_takes_its_greatest_timestamp_from_the_records() -> None:
    batch = Batch(build_batch([Record(0, NOW, None, b"a"), Record(1, NOW - 5, None, b"b")]))
    batch.set_max_timestamp(NOW - 1000)
    inspected = inspect(batch, FULL, NOW)
    assert inspected.max_timestamp == NOW
    assert inspected.is_valid


def test_records_out_of_order_are_renumbered() -> None:
    odd = [Record(0, NOW, b"a", b"1"), Record(2, NOW, b"b", b"2"), Record(3, NOW, b"c", b"3")]
    batch = Batch(build_batch(odd, base_offset=0, last_offset=2, codec=1))
    inspected = inspect(batch, FULL, NOW)
    assert [record.offset for record in read_records(inspected, 10_000)] == [0, 1, 2]
    assert inspected.codec == 1


def test_data_malformed_for_its_codec_is_refused() -> None:
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


def test_record_errors_are_limited_to_ten() -> None:
    batch = Batch(build_batch([Record(i, NOW, None, b"") for i in range(2 * RECORD_ERRORS_MAX)]))
    with pytest.raises(InvalidRecords) as caught:
        inspect(batch, AdmissionPolicy(is_compacted=True), NOW)
    assert len(caught.value.record_errors) == RECORD_ERRORS_MAX


def test_records_of_an_append_time_batch_keep_its_time_when_they_are_recompressed() -> None:
    data = build_batch([Record(0, NOW - 5, b"a", b"1"), Record(1, NOW - 3, b"b", b"2")])
    data[22] |= LOG_APPEND_TIME
    batch = Batch(data)
    batch.seal()
    rebuilt = inspect(batch, AdmissionPolicy(compression_type="lz4"), NOW)
    assert not rebuilt.is_log_append_time
    assert [one.timestamp for one in read_records(rebuilt, 10_000)] == [NOW - 3, NOW - 3]


def test_renumbered_records_keep_their_bytes() -> None:
    headers = (("h", b"1"), ("", None))
    odd = [Record(5, NOW, b"a", None, headers), Record(9, NOW + 7, None, b"x" * 3_000_000)]
    batch = Batch(build_batch(odd, base_offset=0, last_offset=1, codec=4))
    rebuilt = inspect(batch, FULL, NOW)
    expected = [record._replace(offset=index) for index, record in enumerate(odd)]
    assert list(read_records(rebuilt, 1 << 30)) == expected
    assert bytes(rebuilt.data) == bytes(build_batch(expected, codec=4))


def test_headers_are_not_kept() -> None:
    count = 200_000
    headers = (("", None),) * count
    batch = Batch(build_batch([Record(1, NOW, b"k", None, headers)], base_offset=0, last_offset=0))
    del headers
    tracemalloc.start()
    try:
        rebuilt = inspect(batch, AdmissionPolicy(compression_type="lz4", is_compacted=True), NOW)
        assert tracemalloc.get_traced_memory()[1] < 10 * 2 * count
    finally:
        tracemalloc.stop()
    assert next(records_in(rebuilt, bytes(batch.body))).headers == (("", None),) * count


@pytest.mark.parametrize("offset", [0, 1])
def test_a_batch_that_grows_beyond_max_message_bytes_is_refused(offset: int) -> None:
    """Decompressed for an uncompressed topic, or recompressed with a worse codec."""
    records = [Record(offset, NOW, b"k", bytes(3_000_000))]
    batch = Batch(build_batch(records, base_offset=0, last_offset=0, codec=4))
    assert batch.size < 1000
    for codec, limit in (("uncompressed", 1_048_588), ("uncompressed", 3_000_000), ("lz4", 5000)):
        policy = AdmissionPolicy(compression_type=codec, message_bytes_max=limit)
        with pytest.raises(Refusal) as caught:
            inspect(batch, policy, NOW)
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    policy = AdmissionPolicy(compression_type="uncompressed", message_bytes_max=3_000_100)
    assert inspect(batch, policy, NOW).size > 3_000_000


def test_a_batch_that_would_be_too_large_is_not_fully_decompressed() -> None:
    batch = Batch(build_batch([Record(0, NOW, b"k", bytes(30 << 20))], codec=1))
    tracemalloc.start()
    try:
        with pytest.raises(Refusal):
            inspect(batch, AdmissionPolicy(compression_type="uncompressed"), NOW)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_growth_by_renumbered_offset_deltas_counts_for_the_size() -> None:
    records = [Record(0, NOW, b"k", bytes(100)) for _ in range(20_000)]  # Each is to get 1 to 3.
    batch = Batch(build_batch(records, base_offset=0, last_offset=len(records) - 1))
    policy = AdmissionPolicy(full_validation=True, message_bytes_max=batch.size)
    with pytest.raises(Refusal) as caught:
        inspect(batch, policy, NOW)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_recompression_with_the_same_codec_is_charged_to_the_budget() -> None:
    batch = Batch(build_batch([Record(1, NOW, b"k", bytes(200_000))], codec=1, base_offset=0,
                              last_offset=0))  # fmt: skip
    inspection = Inspection(batch, FULL, NOW)
    assert not inspection.run_within(ScanBudget(10_000))
    assert inspection.batch is batch
    list(inspection.steps())
    assert [one.offset for one in read_records(inspection.batch, 1 << 20)] == [0]


def test_a_restarted_inspection_reports_each_error_once() -> None:
    headers = (("", None),) * 100_000
    batch = Batch(build_batch([Record(0, NOW, None, b""), Record(1, NOW, b"", b"", headers)]))
    inspection = Inspection(batch, AdmissionPolicy(is_compacted=True), NOW)
    assert not inspection.run_within(ScanBudget(5000))
    with pytest.raises(InvalidRecords) as caught:
        list(inspection.steps())
    assert len(caught.value.record_errors) == 1
