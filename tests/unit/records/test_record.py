import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kio.records.readers import read_batch
from kio.records.schema import RecordHeader

from ottla.records.batch import HEADER_BYTES, Batch
from ottla.records.record import (
    INT64_MAX,
    INT64_MIN,
    RECORD_BYTES_MIN,
    BadRecords,
    Record,
    build_batch,
    encode_record,
    read_records,
    read_varint,
    write_varint,
)

BYTES_MAX = 1 << 20
RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(0, 2**41),
        key=st.none() | st.binary(max_size=100),
        value=st.none() | st.binary(max_size=10_000),
        headers=st.lists(
            st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3
        ).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def number(records: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + i) for i, record in enumerate(records)]


@given(records=RECORDS, codec=st.integers(0, 4), base_offset=st.integers(0, 2**40))
def test_a_built_batch_is_read_back(records: list[Record], codec: int, base_offset: int) -> None:
    expected = number(records, base_offset)
    batch = Batch(build_batch(expected, codec=codec))
    assert batch.is_valid
    assert list(read_records(batch, BYTES_MAX)) == expected


@given(records=RECORDS, codec=st.integers(0, 4))
def test_kafka_python_reads_what_we_build(records: list[Record], codec: int) -> None:
    expected = number(records, 0)
    parsed = MemoryRecords(bytes(build_batch(expected, codec=codec))).next_batch()
    assert parsed.validate_crc()
    got = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in parsed]
    assert got == [tuple(record) for record in expected]


@given(records=RECORDS)
def test_kio_reads_what_we_build(records: list[Record]) -> None:
    expected = number(records, 7)
    parsed, size = read_batch(bytes(build_batch(expected, producer_id=3, producer_epoch=1)), 0)
    assert size == len(build_batch(expected))
    assert (parsed.base_offset, parsed.producer_id, parsed.producer_epoch) == (7, 3, 1)
    got = [(r.offset, r.key, r.value, r.headers) for r in parsed.records]
    headers = [
        tuple(RecordHeader(key=key.encode(), value=value) for key, value in record.headers)
        for record in expected
    ]
    assert got == [
        (record.offset, record.key, record.value, each)
        for record, each in zip(expected, headers, strict=True)
    ]


@given(records=RECORDS, codec=st.integers(0, 4))
def test_we_read_what_kafka_python_builds(records: list[Record], codec: int) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**9,
    )
    expected = number(records, 0)
    for record in expected:
        builder.append(
            record.offset, record.timestamp, record.key, record.value, list(record.headers)
        )
    assert list(read_records(Batch(bytes(builder.build())), BYTES_MAX)) == expected


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_round_trip(value: int) -> None:
    out = bytearray()
    write_varint(value, out)
    assert len(out) <= 10
    assert read_varint(bytes(out), 0, 64) == (value, len(out))


def test_a_varint_of_eleven_bytes_is_refused() -> None:
    with pytest.raises(BadRecords):
        read_varint(b"\xff" * 11, 0)


def test_compaction_may_leave_gaps() -> None:
    kept = [Record(10, 5, b"a", b"1"), Record(14, 6, b"b", b"2")]
    batch = Batch(build_batch(kept, base_offset=9, last_offset=20))
    assert (batch.base_offset, batch.last_offset, batch.count) == (9, 20, 2)
    assert list(read_records(batch, BYTES_MAX)) == kept


def test_an_empty_batch_can_be_built_and_read() -> None:
    batch = Batch(build_batch([], base_offset=7, last_offset=9))
    assert (batch.count, batch.next_offset) == (0, 10)
    assert list(read_records(batch, BYTES_MAX)) == []


def test_records_carry_the_append_time_of_their_batch() -> None:
    batch = Batch(build_batch([Record(0, 5, None, b"x")], append_time=99))
    assert [record.timestamp for record in read_records(batch, BYTES_MAX)] == [99]


def test_flags_are_set() -> None:
    batch = Batch(build_batch([Record(0, 1, b"", b"")], is_transactional=True, is_control=True))
    assert batch.is_transactional
    assert batch.is_control


def damage(position: int, value: int) -> Batch:
    records = [Record(0, 1, b"key", b"value", (("h", b"1"),))]
    data = build_batch(records)
    data[HEADER_BYTES + position] = value
    return Batch(data)


@pytest.mark.parametrize(
    ("position", "value"),
    [
        pytest.param(0, 200, id="the length of the record"),
        pytest.param(4, 100, id="the length of the key"),
        pytest.param(4, 3, id="a key of length -2"),
        pytest.param(8, 2, id="a shorter value"),
        pytest.param(14, 120, id="more headers than bytes"),
        pytest.param(14, 1, id="a negative number of headers"),
        pytest.param(15, 1, id="a header without a key"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(position: int, value: int) -> None:
    with pytest.raises(BadRecords):
        list(read_records(damage(position, value), BYTES_MAX))


def test_fewer_records_than_promised_are_refused() -> None:
    batch = Batch(build_batch([Record(0, 1, None, b"x" * 7)]))
    batch.count = 2
    with pytest.raises(BadRecords, match="too early"):
        list(read_records(batch, BYTES_MAX))


def test_more_bytes_than_records_are_refused() -> None:
    batch = Batch(build_batch([Record(0, 1, None, b"x"), Record(1, 1, None, b"y")]))
    batch.count = 1
    with pytest.raises(BadRecords, match="follow the last record"):
        list(read_records(batch, BYTES_MAX))


def test_records_that_decompress_to_too_much_are_refused() -> None:
    batch = Batch(build_batch([Record(0, 1, None, bytes(100_000))], codec=4))
    with pytest.raises(BadRecords, match="more than 1000 bytes"):
        list(read_records(batch, 1000))


def test_more_records_than_the_bytes_can_hold_are_refused_before_the_first() -> None:
    batch = Batch(build_batch([Record(0, 1, None, b"x")]))
    batch.count = 2
    with pytest.raises(BadRecords, match="8 bytes cannot hold 2 records"):
        read_records(batch, 1000)


def test_the_smallest_record_has_record_bytes_min_bytes() -> None:
    smallest = encode_record(Record(0, 0, None, None), base_offset=0, base_timestamp=0)
    assert len(smallest) == RECORD_BYTES_MIN


@pytest.mark.parametrize(("bits", "size"), [(32, 6), (64, 11)])
def test_a_varint_of_too_many_bits_is_refused(bits: int, size: int) -> None:
    with pytest.raises(BadRecords, match=f"more than {bits} bits"):
        read_varint(b"\xff" * (size - 1) + b"\x01", 0, bits)
    with pytest.raises(BadRecords, match=f"more than {bits} bits"):
        read_varint(b"\xff" * (size - 2) + b"\x7f", 0, bits)


@pytest.mark.parametrize("timestamp", [INT64_MAX, INT64_MIN, 0, -1])
@pytest.mark.parametrize("base", [INT64_MAX, INT64_MIN, 0])
def test_any_two_timestamps_fit_one_batch(base: int, timestamp: int) -> None:
    records = [Record(0, base, None, None), Record(1, timestamp, None, None)]
    batch = Batch(build_batch(records))
    assert list(read_records(batch, 1000)) == records
