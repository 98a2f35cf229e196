import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import LOG_APPEND_TIME, Batch
from ottla.records.record import (
    BadRecords,
    Record,
    build_batch,
    decompress_body,
    read_bytes,
    records_in,
    write_varint,
)
from ottla.records.record_spans import HEADERS_PAUSE_US, HEADERS_PER_PAUSE, RECORDS_PER_STEP, skim

Contents = st.one_of(st.none(), st.binary(max_size=3), st.just(b"x" * 200))
Headers = st.lists(st.tuples(st.text(max_size=3), Contents), max_size=3).map(tuple)
Times = st.integers(-(2**63), 2**63 - 1)
Each = st.builds(Record, st.integers(0, 300), Times, Contents, Contents, Headers)
Records = st.lists(Each, min_size=1, max_size=4)


def with_headers(count: int, claimed: int | None = None, header: bytes = b"\x00\x01") -> bytes:
    """The body of a batch: one record with the key "k", no value, and `count` headers."""
    inner = bytearray(b"\x00\x00\x00\x02k\x01")
    write_varint(count if claimed is None else claimed, inner)
    inner += header * count
    body = bytearray()
    write_varint(len(inner), body)
    return bytes(body + inner)


def one_record() -> Batch:
    return Batch(build_batch([Record(0, 0, b"k", None)]))


def skimmed(batch: Batch, data: bytes) -> list[tuple[object, ...]] | None:
    """The records found by the walk, or None if malformed."""
    found: list[tuple[object, ...]] = []
    try:
        for record in skim(batch, data):
            if not isinstance(record, int):
                offset, timestamp, has_key, tail, end = record
                key, position = read_bytes(data, tail, end)
                value, _ = read_bytes(data, position, end)
                assert has_key == (key is not None)
                found.append((offset, timestamp, key, value))
    except BadRecords:
        return None
    return found


def read(batch: Batch, data: bytes) -> list[tuple[object, ...]] | None:
    try:
        return [record[:4] for record in records_in(batch, data)]
    except BadRecords:
        return None


@given(records=Records, append_time=st.one_of(st.none(), st.integers(0, 10)))
def test_the_walk_yields_what_the_record_reader_yields(
    records: list[Record], append_time: int | None
) -> None:
    batch = Batch(build_batch(records, base_offset=0, last_offset=300, append_time=append_time))
    assert batch.attributes & LOG_APPEND_TIME or append_time is None
    data = decompress_body(batch, 1 << 20)
    assert skimmed(batch, data) == read(batch, data)
    assert len(skimmed(batch, data) or ()) == len(records)


@given(records=Records, place=st.integers(0, 2000), byte=st.integers(0, 255))
def test_the_walk_refuses_what_the_record_reader_refuses(
    records: list[Record], place: int, byte: int
) -> None:
    batch = Batch(build_batch(records, base_offset=0, last_offset=300))
    data = bytearray(decompress_body(batch, 1 << 20))
    data[place % len(data)] = byte
    assert skimmed(batch, bytes(data)) == read(batch, bytes(data))


@pytest.mark.parametrize("header", [b"\x00\x01", b"\x02a\x02b", b"\x80\x02" + b"k" * 128 + b"\x00"])
def test_the_walk_pauses_among_the_headers_of_one_record(header: bytes) -> None:
    walk = list(skim(one_record(), with_headers(3 * HEADERS_PER_PAUSE + 1, header=header)))
    assert walk[:3] == [HEADERS_PAUSE_US] * 3
    assert len(walk) == 4


def test_the_walk_pauses_after_many_records_and_after_many_headers() -> None:
    count = 2 * RECORDS_PER_STEP
    batch = Batch(build_batch([Record(i, 0, b"k", None, (("h", None),)) for i in range(count)]))
    pauses = [one for one in skim(batch, decompress_body(batch, 1 << 20)) if isinstance(one, int)]
    assert pauses.count(0) == 2
    assert pauses.count(HEADERS_PAUSE_US) == count // HEADERS_PER_PAUSE


def test_the_walk_keeps_no_headers() -> None:
    batch, data = one_record(), with_headers(100_000)
    tracemalloc.start()
    try:
        for _ in skim(batch, data):
            pass
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("claimed", [101, 200, -1, 2**31 - 1])
def test_a_record_claims_no_more_headers_than_its_bytes_hold(claimed: int) -> None:
    data = with_headers(100, claimed)
    for walk in (skim, records_in):
        with pytest.raises(BadRecords, match="headers"):
            list(walk(one_record(), data))
