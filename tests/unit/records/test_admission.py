from dataclasses import replace

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.records.admission import HOUR_MS, AdmissionPolicy, admit
from ottla.records.batch import CONTROL, LOG_APPEND_TIME, Batch
from ottla.records.inspection import InvalidRecords
from ottla.records.record import Record, build_batch, read_records

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
    return admit(
        memoryview(build_batch(records or RECORDS, codec=codec, **fields)), policy, NOW, version
    )


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
        admit(memoryview(bytearray(data)), policy, NOW, version)
    assert caught.value.message, "a refusal says what was wrong"
    return caught.value


@pytest.mark.parametrize("codec", range(5))
def test_a_good_batch_passes_untouched(codec: int) -> None:
    data = build_batch(RECORDS, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    before = bytes(data)
    batch = admit(memoryview(data), POLICY, NOW, 9)
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
def test_what_is_wrong_gets_kafkas_code(data: bytearray, code: ErrorCode) -> None:
    assert refusal_of(data).code == code


def test_a_batch_of_the_greatest_size_passes_and_one_byte_more_does_not() -> None:
    data = build_batch(RECORDS)
    exact = AdmissionPolicy(message_bytes_max=len(data))
    assert admit(memoryview(data), exact, NOW, 9).count == 3
    tight = AdmissionPolicy(message_bytes_max=len(data) - 1)
    assert refusal_of(data, tight).code == ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_needs_version_seven() -> None:
    assert produced(codec=4, version=7).codec == 4
    refusal = refusal_of(build_batch(RECORDS, codec=4), version=6)
    assert refusal.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_record_from_too_far_ahead_is_refused_by_its_index() -> None:
    late = [Record(0, NOW, None, b"a"), Record(1, NOW + HOUR_MS + 1, None, b"b")]
    refusal = refusal_of(build_batch(late))
    assert refusal.code == ErrorCode.INVALID_TIMESTAMP
    assert isinstance(refusal, InvalidRecords)
    assert [index for index, _ in refusal.record_errors] == [1]
    assert produced([late[0], late[1]._replace(timestamp=NOW + HOUR_MS)]).count == 2


def test_a_header_that_lies_about_its_timestamps_is_refused() -> None:
    data = altered(35, (NOW + 2 * HOUR_MS).to_bytes(8, "big"))
    assert refusal_of(data).code == ErrorCode.INVALID_TIMESTAMP


def test_old_records_are_refused_where_the_topic_says_so() -> None:
    policy = AdmissionPolicy(timestamp_before_ms_max=1000)
    old = [Record(0, NOW, None, b"a"), Record(1, NOW - 1001, None, b"b")]
    refusal = refusal_of(build_batch(old), policy)
    assert refusal.code == ErrorCode.INVALID_TIMESTAMP
    assert isinstance(refusal, InvalidRecords)
    assert refusal.record_errors[0][0] == 1


def test_records_without_a_timestamp_are_in_no_window() -> None:
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
    kept = admit(memoryview(data), POLICY, NOW, 9)
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
    assert bytes(admit(memoryview(data), policy, NOW, 9).data) == before


def test_uncompressed_topics_unpack() -> None:
    batch = produced(policy=AdmissionPolicy(compression_type="uncompressed"), codec=2)
    assert batch.codec == 0
    assert list(read_records(batch, BYTES_MAX)) == RECORDS


def test_a_bomb_is_refused() -> None:
    policy = AdmissionPolicy(compression_type="gzip", decompressed_bytes_max=10_000)
    refusal = refusal_of(build_batch([Record(0, NOW, None, bytes(100_000))], codec=4), policy)
    assert refusal.code == ErrorCode.MESSAGE_TOO_LARGE


def test_malformed_records_pass_unless_someone_looks() -> None:
    data = altered(61, b"\x02")
    assert admit(memoryview(data), POLICY, NOW, 9).count == 3
    looks = replace(POLICY, full_validation=True)
    assert refusal_of(data, looks).code == ErrorCode.INVALID_RECORD
