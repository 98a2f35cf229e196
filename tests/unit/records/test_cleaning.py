"""Compaction of single batches."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.types import WallTime
from ottla.records.batch import DELETE_HORIZON, HEADER_BYTES, Batch
from ottla.records.cleaning import (
    CleaningRules,
    Verdict,
    clean_batch,
    delete_horizon,
    keys_of,
)
from ottla.records.record import INT64_MAX, INT64_MIN, BadRecords, Record, build_batch, read_records

NOW = WallTime(1_700_000_000_000)
RULES = CleaningRules(NOW, 1000, 1_000_000)
STAYS = Verdict()
KEPT_EMPTY = Verdict(is_kept_empty=True)


class Latest:
    """A dict as offset map."""

    def __init__(self, offsets: dict[bytes, int], end_offset: int = 10**9) -> None:
        self.end_offset = end_offset
        self._offsets = offsets

    def latest(self, key: bytes) -> int:
        return self._offsets.get(key, -1)


NOTHING_LATER = Latest({})


def make(*pairs: tuple[bytes | None, bytes | None], codec: int = 0, append_time: int = -1) -> Batch:
    records = [
        Record(100 + i, NOW + i, key, value, (("h", b"x"),)) for i, (key, value) in enumerate(pairs)
    ]
    return Batch(
        build_batch(
            records,
            codec=codec,
            leader_epoch=3,
            producer_id=7,
            producer_epoch=1,
            base_sequence=40,
            append_time=None if append_time < 0 else append_time,
        )
    )


def marker() -> Batch:
    record = Record(100, NOW, pack(">hh", 0, 1), pack(">hi", 0, 0))
    return Batch(
        build_batch(
            [record], producer_id=7, producer_epoch=1, is_transactional=True, is_control=True
        )
    )


def clean(
    batch: Batch,
    latest: Latest = NOTHING_LATER,
    verdict: Verdict = STAYS,
    rules: CleaningRules = RULES,
) -> Batch | None:
    data = clean_batch(batch, latest, verdict, rules)
    if data is None:
        return None
    cleaned = Batch(data)
    assert cleaned.is_valid
    assert cleaned.size == len(data)
    same = ("base_offset", "last_offset_delta", "leader_epoch", "producer_id", "producer_epoch")
    for name in (*same, "base_sequence", "is_control", "is_transactional", "is_log_append_time"):
        assert getattr(cleaned, name) == getattr(batch, name), name
    return cleaned


def left(batch: Batch | None) -> list[Record]:
    assert batch is not None
    return list(read_records(batch, 1_000_000))


def test_a_batch_with_all_records_retained_is_returned_unchanged() -> None:
    batch = make((b"a", b"1"), (b"b", b"2"))
    assert clean_batch(batch, NOTHING_LATER, STAYS, RULES) is batch.data


@pytest.mark.parametrize("codec", range(5))
def test_records_with_a_later_record_of_their_key_are_removed(codec: int) -> None:
    batch = make((b"a", b"1" * 100), (b"b", b"2"), (b"a", b"3"), codec=codec)
    cleaned = clean(batch, Latest({b"a": 102, b"b": 900}))
    assert left(cleaned) == [Record(102, NOW + 2, b"a", b"3", (("h", b"x"),))]
    assert cleaned is not None
    assert (cleaned.codec, cleaned.count, cleaned.max_timestamp) == (codec, 1, NOW + 2)


def test_max_timestamp_is_that_of_the_retained_records() -> None:
    cleaned = clean(make((b"a", b"1"), (b"b", b"2")), Latest({b"b": 900}))
    assert cleaned is not None
    assert cleaned.max_timestamp == NOW


def test_cleaning_keeps_the_append_time() -> None:
    batch = make((b"a", b"1"), (b"b", b"2"), append_time=NOW + 50)
    cleaned = clean(batch, Latest({b"b": 900}))
    assert [record.timestamp for record in left(cleaned)] == [NOW + 50]


def test_records_beyond_the_offset_map_are_retained() -> None:
    batch = make((b"a", b"1"), (None, b"2"), (b"a", None))
    cleaned = clean(batch, Latest({b"a": 10**6}, end_offset=101))
    assert [record.offset for record in left(cleaned)] == [101, 102]


def test_a_record_without_a_key_is_removed() -> None:
    cleaned = clean(make((None, b"1"), (b"b", b"2")))
    assert [record.key for record in left(cleaned)] == [b"b"]


def test_a_batch_without_retained_records_is_removed() -> None:
    assert clean(make((b"a", b"1")), Latest({b"a": 900})) is None


def test_the_header_is_kept_for_the_producers_last_sequence() -> None:
    cleaned = clean(make((b"a", b"1"), codec=4), Latest({b"a": 900}), KEPT_EMPTY)
    assert cleaned is not None
    assert (cleaned.size, cleaned.count, cleaned.codec) == (HEADER_BYTES, 0, 0)
    assert (cleaned.base_timestamp, cleaned.max_timestamp) == (-1, NOW)
    assert clean(cleaned, verdict=STAYS) is None
    assert clean(cleaned, verdict=KEPT_EMPTY) is not None


def test_a_discarded_batch_leaves_at_most_its_header() -> None:
    batch = make((b"a", b"1"))
    assert clean(batch, verdict=Verdict(is_discarded=True)) is None
    cleaned = clean(batch, verdict=Verdict(is_discarded=True, is_kept_empty=True))
    assert left(cleaned) == []


@pytest.mark.parametrize("codec", [0, 4])
def test_a_tombstone_gets_a_delete_horizon_and_is_removed_after_it(codec: int) -> None:
    batch = make((b"a", None), (b"b", b"2"), codec=codec)
    marked = clean(batch)
    assert marked is not None
    assert marked.attributes & DELETE_HORIZON
    assert delete_horizon(batch) is None
    assert delete_horizon(marked) == NOW + 1000
    assert left(marked) == left(batch)
    later = CleaningRules(WallTime(NOW + 999), 1000, 1_000_000)
    assert clean_batch(marked, NOTHING_LATER, STAYS, later) is marked.data
    over = CleaningRules(WallTime(NOW + 1000), 1000, 1_000_000)
    cleaned = clean(marked, rules=over)
    assert [record.key for record in left(cleaned)] == [b"b"]
    assert left(cleaned)[0].timestamp == NOW + 1


@pytest.mark.parametrize("base", [INT64_MAX, INT64_MIN])
@pytest.mark.parametrize("value", [None, b"v"])
def test_timestamps_that_wrap_around_are_kept(base: int, value: bytes | None) -> None:
    batch = make((b"a", b"1"), (b"b", value), (b"c", b"3"))
    batch.base_timestamp = base
    batch.set_max_timestamp(INT64_MAX)
    cleaned = clean(batch, Latest({b"a": 1000}))
    before = [record.timestamp for record in left(batch)]
    assert [record.timestamp for record in left(cleaned)] == before[1:]


def test_an_endless_retention_does_not_overflow() -> None:
    marked = clean(make((b"a", None)), rules=CleaningRules(NOW, INT64_MAX, 1000))
    assert marked is not None
    assert delete_horizon(marked) == INT64_MAX
    assert left(marked)[0].timestamp == NOW


def test_a_marker_stays_and_gets_a_horizon_once_its_transaction_is_empty() -> None:
    assert clean(marker()) is not None
    cleaned = clean(marker(), verdict=Verdict(is_marker_of_nothing=True))
    assert cleaned is not None
    assert delete_horizon(cleaned) == NOW + 1000
    assert left(cleaned)[0].value == pack(">hi", 0, 0)


def test_the_keys_of_a_batch_come_with_their_offsets() -> None:
    batch = make((b"a", b"1"), (None, b"2"), (b"", None), codec=1)
    assert list(keys_of(batch, 1000)) == [(100, b"a"), (102, b"")]


def test_malformed_records_are_refused() -> None:
    data = build_batch([Record(0, NOW, b"key", b"value")])
    for position in range(HEADER_BYTES, len(data)):
        for byte in (0x00, 0x7F, 0xFF):
            broken = bytearray(data)
            broken[position] = byte
            batch = Batch(broken)
            try:
                clean_batch(batch, NOTHING_LATER, STAYS, RULES)
            except BadRecords:
                continue
    cut = bytearray(data[:-3])
    with pytest.raises(BadRecords):
        list(keys_of(Batch(cut), 1000))
    with pytest.raises(BadRecords):
        list(keys_of(make((b"a", b"v" * 5000), codec=1), 1000))


PAIRS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.binary(max_size=3)),
        st.one_of(st.none(), st.binary(max_size=80)),
    ),
    min_size=1,
    max_size=30,
)


@given(
    pairs=PAIRS,
    latest=st.dictionaries(st.binary(max_size=3), st.integers(90, 140)),
    codec=st.integers(0, 4),
    end_offset=st.integers(95, 140),
)
def test_cleaning_matches_a_simple_model(
    pairs: list[tuple[bytes | None, bytes | None]],
    latest: dict[bytes, int],
    codec: int,
    end_offset: int,
) -> None:
    batch = make(*pairs, codec=codec)
    cleaned = clean(batch, Latest(latest, end_offset))
    expected = [
        record
        for record in read_records(batch, 1_000_000)
        if record.offset >= end_offset
        or (record.key is not None and record.offset >= latest.get(record.key, -1))
    ]
    assert (left(cleaned) if cleaned else []) == expected
