from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import HEADER_BYTES
from ottla.records.record import Record, build_batch
from ottla.spark.arrow import columnar
from ottla.spark.arrow.columnar import Decoder
from ottla.spark.arrow.schema import WITH_HEADERS, arrow_schema
from ottla.spark.errors import Unreadable
from tests.unit.spark.making import START_MS, joined, placed_in, records

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEADERS = (("a", b"1"), ("b", None))


def decode(
    data: bytes | bytearray,
    start: int = 0,
    end: int = 2**62,
    columns: tuple[str, ...] = WITH_HEADERS,
) -> list[dict]:
    made = list(Decoder("orders", 3, columns).decode(data, placed_in(data), start, end))
    assert all(batch.schema == arrow_schema(columns) for batch in made)
    for batch in made:
        batch.validate(full=True)
    return [row for batch in made for row in batch.to_pylist()]


def expected(record: Record) -> dict:
    return {
        "key": record.key,
        "value": record.value,
        "topic": "orders",
        "partition": 3,
        "offset": record.offset,
        "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
        "timestampType": 0,
        "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
    }


@pytest.mark.parametrize("codecs", [(0,), (1,), (2,), (3,), (4,), (0, 4, 0, 2)])
@pytest.mark.parametrize("per_batch", [1, 13, 400])
def test_columns_hold_what_the_records_hold(codecs: tuple[int, ...], per_batch: int) -> None:
    written = records(0, 800, headers=HEADERS)
    batches = [written[n : n + per_batch] for n in range(0, len(written), per_batch)]
    assert decode(joined(batches, codecs)) == [expected(record) for record in written]


TEXT = st.text(max_size=5)
CONTENT = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**40),
        CONTENT,
        CONTENT,
        st.lists(st.tuples(TEXT, CONTENT), max_size=4),
    ),
    min_size=1,
    max_size=30,
)


@given(st.lists(RECORDS, min_size=1, max_size=4), st.sampled_from([0, 4]))
def test_any_batch_round_trips(batches: list[list[tuple]], codec: int) -> None:
    made: list[list[Record]] = []
    offset = 0
    for batch in batches:
        made.append([])
        for time_ms, key, value, headers in batch:
            made[-1].append(Record(offset, time_ms, key, value, tuple(headers)))
            offset += 3  # Compaction leaves gaps.
    data = joined(made, (codec,))
    assert decode(data) == [expected(record) for batch in made for record in batch]


def test_only_offsets_within_the_range_are_rows() -> None:
    data = joined([records(0, 10), records(10, 10), records(20, 10)])
    assert [row["offset"] for row in decode(data, 7, 22)] == list(range(7, 22))
    assert decode(data, 40, 50) == []


def test_columns_come_in_the_order_that_is_asked_for() -> None:
    data = joined([records(0, 3)])
    assert [list(row) for row in decode(data, columns=("offset", "key"))] == [["offset", "key"]] * 3
    assert [row["timestampType"] for row in decode(data, columns=("timestampType",))] == [0] * 3


def test_the_broker_s_time_is_that_of_the_whole_batch() -> None:
    data = build_batch(records(0, 3), append_time=START_MS + 99) + build_batch(records(3, 2))
    rows = decode(data)
    late = EPOCH + timedelta(milliseconds=START_MS + 99)
    assert [row["timestamp"] for row in rows[:3]] == [late] * 3
    assert rows[3]["timestamp"] == EPOCH + timedelta(milliseconds=START_MS + 3)
    assert [row["timestampType"] for row in rows] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("time_ms", [2**62, -(2**62)])
def test_a_time_that_spark_cannot_hold_is_told_with_its_place(time_ms: int) -> None:
    data = build_batch([Record(7, time_ms, None, b"x")])
    with pytest.raises(Unreadable, match=f"orders-3 at offset 7 has the timestamp {time_ms} ms"):
        decode(data)
    assert decode(data, columns=("value",)) == [{"value": b"x"}]


def test_compressed_batches_are_decompressed_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columnar, "WINDOW_BYTES", 1000)
    written = records(0, 100, size=50)
    data = joined([written[n : n + 10] for n in range(0, 100, 10)], (4,))
    made = list(Decoder("orders", 3, ("offset",)).decode(data, placed_in(data), 0, 1000))
    assert [batch.num_rows for batch in made] == [20] * 5


def test_decoded_columns_do_not_share_the_input_buffer() -> None:
    data = joined([records(0, 50)])
    (batch,) = Decoder("orders", 3, ("key", "value")).decode(data, placed_in(data), 0, 1000)
    before = pa.RecordBatch.from_pylist(batch.to_pylist(), schema=batch.schema)
    data[:] = bytes(len(data))
    assert batch.equals(before)


@pytest.mark.parametrize("position", range(HEADER_BYTES, HEADER_BYTES + 30))
def test_malformed_bytes_are_refused_without_reading_beyond(position: int) -> None:
    data = build_batch([Record(0, 5, b"key", b"value", (("a", b"b"),))] * 2)
    for wrong in (0x00, 0x7F, 0xFF):
        changed = bytearray(data)
        if position >= len(changed):
            continue
        changed[position] = wrong
        with suppress(Unreadable):  # Anything else, and a crash most of all, would be wrong.
            assert len(decode(changed)) <= 2


def test_malformed_compressed_bytes_are_refused() -> None:
    data = build_batch(records(0, 5), codec=4)
    data[HEADER_BYTES + 6 :] = bytes(len(data) - HEADER_BYTES - 6)
    with pytest.raises(Unreadable, match="bad zstd data"):
        decode(data)
