import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from ottla.client.idempotence import Numbers
from ottla.records.batch import HEADER_BYTES, Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.spark.arrow.encoding import Rows, encode, encode_headers, record_sizes, seal

BYTES_MAX = 1 << 24
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NOBODY = Numbers(-1, -1, -1)

RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(0, 2**41) | st.sampled_from([0, 2**47]),
        key=st.none() | st.binary(max_size=20),
        value=st.none() | st.binary(max_size=9) | st.sampled_from([63, 64, 8191, 8192]).map(bytes),
        headers=st.lists(
            st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2
        ).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


def rows_of(records: list[Record]) -> Rows:
    headers = [
        None if not r.headers else [{"key": k, "value": v} for k, v in r.headers] for r in records
    ]
    return Rows(
        pa.array([r.key for r in records], pa.binary()),
        pa.array([r.value for r in records], pa.binary()),
        encode_headers(pa.array(headers, HEADERS)),
        np.array([r.timestamp for r in records], dtype=np.int64),
    )


def numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=index) for index, record in enumerate(records)]


@given(RECORDS, st.integers(0, 4))
def test_encoded_batches_are_read_back(records: list[Record], codec: int) -> None:
    (body,) = encode(rows_of(records), [0])
    batch = Batch(seal(body, codec, Numbers(7, 3, 12)))
    assert batch.is_valid
    assert batch.codec == codec
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 12)
    assert list(read_records(batch, BYTES_MAX)) == numbered(records)


@given(RECORDS)
def test_the_bytes_are_those_of_the_plain_builder(records: list[Record]) -> None:
    (body,) = encode(rows_of(records), [0])
    plain = build_batch(numbered(records), producer_id=1, producer_epoch=2, base_sequence=3)
    assert seal(body, 0, Numbers(1, 2, 3)) == plain


@given(RECORDS)
def test_kio_reads_what_is_encoded(records: list[Record]) -> None:
    (body,) = encode(rows_of(records), [0])
    sealed = bytes(seal(body, 0, Numbers(5, 0, 0)))
    parsed, size = read_batch(sealed, 0)
    assert size == len(sealed)
    assert [(r.key, r.value) for r in parsed.records] == [(r.key, r.value) for r in records]
    assert [len(r.headers) for r in parsed.records] == [len(r.headers) for r in records]


@given(RECORDS, st.data())
def test_deltas_restart_in_every_batch(records: list[Record], data: st.DataObject) -> None:
    middle = data.draw(st.sets(st.integers(1, len(records)), max_size=4))
    starts = sorted({0, *middle} - {len(records)})
    bodies = list(encode(rows_of(records), starts))
    assert len(bodies) == len(starts)
    for body, start, end in zip(bodies, starts, [*starts[1:], len(records)], strict=True):
        batch = Batch(seal(body, 0, NOBODY))
        assert list(read_records(batch, BYTES_MAX)) == numbered(records[start:end])
        assert batch.max_timestamp == max(r.timestamp for r in records[start:end])
        assert batch.base_timestamp == records[start].timestamp


@given(RECORDS)
def test_no_record_is_larger_than_it_was_said_to_be(records: list[Record]) -> None:
    rows = rows_of(records)
    sizes = record_sizes(rows)
    assert len(sizes) == len(records)
    for index, record in enumerate(records):
        (body,) = encode(rows_of([record]), [0])
        assert len(body.records) <= sizes[index]
    (body,) = encode(rows, [0])
    assert len(body.records) <= int(sizes.sum()) <= len(body.records) + 40 * len(records)


def test_a_slice_of_a_larger_array_is_encoded_as_such() -> None:
    keys = pa.array([b"a", None, b"ccc", b"d"], pa.binary())
    headers = pa.array([None, [{"key": "h", "value": None}], [], [{"key": "i", "value": b"1"}]])
    rows = Rows(
        keys[1:],
        None,
        encode_headers(headers.cast(HEADERS)[1:]),
        np.array([5, 4, 9], dtype=np.int64),
    )
    (body,) = encode(rows, [0])
    assert list(read_records(Batch(seal(body, 0, NOBODY)), BYTES_MAX)) == [
        Record(0, 5, None, None, (("h", None),)),
        Record(1, 4, b"ccc", None, ()),
        Record(2, 9, b"d", None, (("i", b"1"),)),
    ]


def test_no_headers_at_all_cost_nothing() -> None:
    assert encode_headers(pa.array([None, []], HEADERS)) is None


def test_a_header_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="a header has no key"):
        encode_headers(pa.array([[{"key": None, "value": b""}]], HEADERS))


def test_a_batch_of_a_transaction_says_so() -> None:
    (body,) = encode(Rows(None, None, None, np.array([1], dtype=np.int64)), [0])
    sealed = Batch(seal(body, 0, Numbers(1, 0, 0), is_transactional=True))
    assert sealed.is_transactional
    assert sealed.is_valid
    assert sealed.size == HEADER_BYTES + 7
