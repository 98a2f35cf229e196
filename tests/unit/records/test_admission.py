from dataclasses import replace

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.records.admission import HOUR_MS, Admission, AdmissionPolicy, admit
from ottla.records.batch import CONTROL, LOG_APPEND_TIME, Batch, Buffer
from ottla.records.inspection import RECORD_ERRORS_MAX, InvalidRecords
from ottla.records.record import INT64_MAX, Record, build_batch, read_records
from ottla.records.scan import ScanBudget

NOW = WallTime(1_700_000_000_000)
POLICY = AdmissionPolicy()
RECORDS = [Record(i, NOW + i, b"key", b"value %d" % i) for i in range(3)]
BYTES_MAX = 1 << 20


def produced(
    records: list[Record] | None = None,
    *,
    version: int = 9,
    policy: AdmissionPolicy = POLICY,
    codec: int = 0,
    **fields: int,
) -> Batch:
    return admitted(
        memoryview(build_batch(records or RECORDS, codec=codec, **fields)), policy, NOW, version
    )


def admitted(data: Buffer, policy: AdmissionPolicy, now: WallTime, version: int) -> Batch:
    batch = admit(data, policy, now, version)
    assert isinstance(batch, Batch)
    return batch


def altered(position: int, value: bytes, *, reseal: bool = True) -> bytearray:
    """A good batch with some bytes of its header replaced."""
    data = build_batch(RECORDS)
    data[position : position + len(value)] = value
    if reseal:
        Batch(data).seal()
    return data


def refusal_of(
    data: bytes | bytearray, policy: AdmissionPolicy = POLICY, version: int = 9
) -> Refusal:
    with pytest.raises(Refusal) as caught:
        admitted(memoryview(bytearray(data)), policy, NOW, version)
    assert caught.value.message, "a refusal says what was wrong"
    return caught.value


@pytest.mark.parametrize("codec", range(5))
def test_a_good_batch_passes_untouched(codec: int) -> None:
    data = build_batch(RECORDS, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    before = bytes(data)
    batch = admitted(memoryview(data), POLICY, NOW, 9)
    assert bytes(batch.data) == before
    assert batch.count == 3


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="no batch"),
        pytest.param(b"x" * 12, ErrorCode.INVALID_RECORD, id="less than a batch"),
        pytest.param(
            build_batch(RECORDS) + build_batch(RECORDS), ErrorCode.INVALID_RECORD, id="two batches"
        ),
        pytest.param(build_batch(RECORDS)[:-1], ErrorCode.INVALID_RECORD, id="not whole"),
        pytest.param(altered(16, b"\x00"), ErrorCode.INVALID_RECORD, id="magic 0"),
        pytest.param(altered(16, b"\x01"), ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(altered(16, b"\x03"), ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(
            altered(8, (13).to_bytes(4, "big")), ErrorCode.CORRUPT_MESSAGE, id="length too small"
        ),
        pytest.param(
            build_batch(RECORDS)[:8] + (18).to_bytes(4, "big") + build_batch(RECORDS)[12:30],
            ErrorCode.CORRUPT_MESSAGE,
            id="shorter than a header",
        ),
        pytest.param(
            altered(70, b"!", reseal=False), ErrorCode.CORRUPT_MESSAGE, id="wrong checksum"
        ),
        pytest.param(altered(7, b"\x05"), ErrorCode.INVALID_RECORD, id="base offset not 0"),
        pytest.param(
            altered(23, (5).to_bytes(4, "big")), ErrorCode.INVALID_RECORD, id="count mismatch"
        ),
        pytest.param(
            altered(57, (0).to_bytes(4, "big")), ErrorCode.INVALID_RECORD, id="no records"
        ),
        pytest.param(altered(23, b"\xff" * 4), ErrorCode.INVALID_RECORD, id="negative range"),
        pytest.param(altered(22, bytes([CONTROL])), ErrorCode.INVALID_RECORD, id="control batch"),
        pytest.param(
            altered(22, b"\x05"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="unknown codec"
        ),
        pytest.param(
            build_batch(RECORDS, producer_id=4, producer_epoch=0),
            ErrorCode.INVALID_RECORD,
            id="a producer without a sequence",
        ),
    ],
)
def test_an_invalid_batch_gets_kafkas_error_code(data: bytearray, code: ErrorCode) -> None:
    assert refusal_of(data).code == code


def test_a_batch_of_max_message_bytes_passes_and_one_byte_more_does_not() -> None:
    data = build_batch(RECORDS)
    exact = AdmissionPolicy(message_bytes_max=len(data))
    assert admitted(memoryview(data), exact, NOW, 9).count == 3
    tight = AdmissionPolicy(message_bytes_max=len(data) - 1)
    assert refusal_of(data, tight).code == ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_needs_version_seven() -> None:
    assert produced(codec=4, version=7).codec == 4
    refusal = refusal_of(build_batch(RECORDS, codec=4), version=6)
    assert refusal.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_record_too_far_in_the_future_is_refused_by_its_index() -> None:
    late = [Record(0, NOW, None, b"a"), Record(1, NOW + HOUR_MS + 1, None, b"b")]
    refusal = refusal_of(build_batch(late))
    assert refusal.code == ErrorCode.INVALID_TIMESTAMP
    assert isinstance(refusal, InvalidRecords)
    assert [index for index, _ in refusal.record_errors] == [1]
    assert produced([late[0], late[1]._replace(timestamp=NOW + HOUR_MS)]).count == 2


def test_a_header_with_a_false_max_timestamp_is_refused() -> None:
    data = altered(35, (NOW + 2 * HOUR_MS).to_bytes(8, "big"))
    assert refusal_of(data).code == ErrorCode.INVALID_TIMESTAMP


def test_old_records_are_refused_where_the_topic_says_so() -> None:
    policy = AdmissionPolicy(timestamp_before_ms_max=1000)
    old = [Record(0, NOW, None, b"a"), Record(1, NOW - 1001, None, b"b")]
    refusal = refusal_of(build_batch(old), policy)
    assert refusal.code == ErrorCode.INVALID_TIMESTAMP
    assert isinstance(refusal, InvalidRecords)
    assert refusal.record_errors[0][0] == 1


def test_records_without_a_timestamp_pass_timestamp_bounds() -> None:
    policy = AdmissionPolicy(timestamp_before_ms_max=1000)
    assert produced([Record(0, -1, None, b"a")], policy=policy).max_timestamp == -1


def test_a_compacted_topic_refuses_each_record_without_a_key() -> None:
    policy = AdmissionPolicy(is_compacted=True)
    records = [Record(0, NOW, None, b"a"), Record(1, NOW, b"k", b"b"), Record(2, NOW, None, b"c")]
    refusal = refusal_of(build_batch(records, codec=2), policy)
    assert refusal.code == ErrorCode.INVALID_RECORD
    assert isinstance(refusal, InvalidRecords)
    assert [index for index, _ in refusal.record_errors] == [0, 2]
    assert produced(RECORDS, policy=policy).count == 3


def test_append_time_is_stamped_into_the_batch() -> None:
    policy = AdmissionPolicy(timestamp_type="LogAppendTime")
    far = [Record(0, NOW + 10 * HOUR_MS, None, b"a")]
    batch = produced(far, policy=policy)
    assert batch.is_log_append_time
    assert batch.is_valid
    assert [record.timestamp for record in read_records(batch, BYTES_MAX)] == [NOW]


def test_a_producer_may_not_claim_append_time() -> None:
    data = altered(22, bytes([LOG_APPEND_TIME]))
    policy = AdmissionPolicy(timestamp_type="LogAppendTime")
    assert refusal_of(data, policy).code == ErrorCode.INVALID_TIMESTAMP
    kept = admitted(memoryview(data), POLICY, NOW, 9)
    assert not kept.is_log_append_time
    assert kept.is_valid


@pytest.mark.parametrize(("name", "codec"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_a_topic_recompresses_with_its_own_codec(name: str, codec: int) -> None:
    policy = AdmissionPolicy(compression_type=name)
    batch = produced(
        policy=policy,
        codec=1 if codec != 1 else 0,
        producer_id=8,
        producer_epoch=1,
        base_sequence=3,
    )
    assert batch.codec == codec
    assert batch.is_valid
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (8, 1, 3)
    assert list(read_records(batch, BYTES_MAX)) == RECORDS


def test_a_batch_with_the_topics_codec_is_not_recompressed() -> None:
    data = build_batch(RECORDS, codec=4)
    before = bytes(data)
    policy = AdmissionPolicy(compression_type="zstd", compression_level=19)
    assert bytes(admitted(memoryview(data), policy, NOW, 9).data) == before


def test_a_topic_of_type_uncompressed_decompresses_batches() -> None:
    batch = produced(policy=AdmissionPolicy(compression_type="uncompressed"), codec=2)
    assert batch.codec == 0
    assert list(read_records(batch, BYTES_MAX)) == RECORDS


def test_a_decompression_bomb_is_refused() -> None:
    policy = AdmissionPolicy(compression_type="gzip", decompressed_bytes_max=10_000)
    refusal = refusal_of(build_batch([Record(0, NOW, None, bytes(100_000))], codec=4), policy)
    assert refusal.code == ErrorCode.MESSAGE_TOO_LARGE


def test_malformed_records_pass_unless_the_topic_parses_them() -> None:
    data = altered(61, b"\x02")
    assert admitted(memoryview(data), POLICY, NOW, 9).count == 3
    looks = replace(POLICY, full_validation=True)
    assert refusal_of(data, looks).code == ErrorCode.INVALID_RECORD


APPEND_TIME = AdmissionPolicy(timestamp_type="LogAppendTime")
COMPACTED = AdmissionPolicy(is_compacted=True)


def claiming(count: int, *, codec: int = 0, attributes: int = 0) -> bytearray:
    """A batch of one record whose header claims `count` of them."""
    data = build_batch(RECORDS[:1], codec=codec)
    data[22] |= attributes
    data[23:27] = (count - 1).to_bytes(4, "big")
    data[57:61] = count.to_bytes(4, "big")
    Batch(data).seal()
    return data


@pytest.mark.parametrize("count", [100, 10_000_000])
@pytest.mark.parametrize("policy", [POLICY, APPEND_TIME, COMPACTED])
def test_an_uncompressed_batch_claims_no_more_records_than_its_bytes_hold(
    policy: AdmissionPolicy, count: int
) -> None:
    refusal = refusal_of(claiming(count), policy)
    assert refusal.code == ErrorCode.INVALID_RECORD
    assert not isinstance(refusal, InvalidRecords)


def test_a_compressed_batch_claims_no_more_records_than_the_decompression_limit() -> None:
    most = POLICY.decompressed_bytes_max // 64
    assert admitted(memoryview(claiming(most, codec=4)), POLICY, NOW, 9).count == most
    assert refusal_of(claiming(most + 1, codec=4)).code == ErrorCode.MESSAGE_TOO_LARGE


def test_the_errors_of_a_batch_with_a_false_timestamp_type_are_bounded() -> None:
    refusal = refusal_of(claiming(1000, codec=4, attributes=LOG_APPEND_TIME), APPEND_TIME)
    assert isinstance(refusal, InvalidRecords)
    assert [index for index, _ in refusal.record_errors] == list(range(RECORD_ERRORS_MAX))


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("compression_type", ["producer", "gzip"])
@pytest.mark.parametrize(("base", "delta"), [(INT64_MAX, 1), (-(2**63), -1), (INT64_MAX, -1)])
def test_timestamps_beyond_64_bits_wrap_around_as_in_java(
    codec: int, compression_type: str, base: int, delta: int
) -> None:
    policy = AdmissionPolicy(
        timestamp_type="LogAppendTime", is_compacted=True, compression_type=compression_type
    )
    data = build_batch([Record(0, 0, b"a", b""), Record(1, delta, b"b", b"")], codec=codec)
    data[27:35] = base.to_bytes(8, "big", signed=True)
    Batch(data).seal()
    batch = admitted(memoryview(data), policy, NOW, 9)
    assert [record.timestamp for record in read_records(batch, BYTES_MAX)] == [NOW, NOW]
    assert batch.is_valid


def test_a_batch_beyond_the_budget_is_left_to_a_worker_and_comes_out_the_same() -> None:
    policy = AdmissionPolicy(is_compacted=True, compression_type="lz4")
    records = [Record(i, NOW + i % 7, b"key", b"value") for i in range(2500)]
    data = build_batch(records, codec=4)
    expected = bytes(admitted(bytearray(data), policy, NOW, 9).data)
    admission = admit(data, policy, NOW, 9, ScanBudget(2000))
    assert isinstance(admission, Admission)
    assert len(list(admission.steps())) > 2
    assert bytes(admission.stamped(NOW).data) == expected


@pytest.mark.parametrize("codec", ["producer", "lz4"])
def test_log_append_time_is_set_after_a_long_admission(codec: str) -> None:
    policy = AdmissionPolicy(
        is_compacted=True, timestamp_type="LogAppendTime", compression_type=codec
    )
    records = [Record(i, NOW, b"key", b"value") for i in range(2500)]
    admission = admit(build_batch(records, codec=4), policy, NOW, 9, ScanBudget(2000))
    assert isinstance(admission, Admission)
    list(admission.steps())
    batch = admission.stamped(WallTime(NOW + 3000))
    assert (batch.max_timestamp, batch.is_log_append_time) == (NOW + 3000, True)
    assert batch.is_valid


def test_a_refusal_beyond_the_budget_comes_from_the_steps() -> None:
    records = [Record(i, NOW, None, b"") for i in range(2500)]
    admission = admit(build_batch(records), COMPACTED, NOW, 9, ScanBudget(2000))
    assert isinstance(admission, Admission)
    with pytest.raises(InvalidRecords) as caught:
        list(admission.steps())
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_a_future_max_timestamp_is_refused_without_scanning_too_many_records() -> None:
    late = NOW + 2 * HOUR_MS
    data = build_batch([Record(i, late, None, b"") for i in range(2500)], codec=4)
    with pytest.raises(InvalidRecords) as caught:
        admit(data, POLICY, NOW, 9, ScanBudget(0))
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
