"""The fold keeps the last record of each key, and changes nothing else."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import Batch
from ottla.records.compression import Codec
from ottla.records.key_fold import RECORDS_MAX, fold, stored
from ottla.records.record import BadRecords, Record, build_batch, read_records

REPLACED = (b"o",)
HEADERS = (("h", b"1"),)
Keys = st.sampled_from([b"o1", b"o2", b"o3", b"group", b"", b"o" * 100])
Values = st.one_of(st.none(), st.binary(max_size=200))
Batches = st.lists(st.lists(st.tuples(Keys, Values), min_size=1, max_size=6), max_size=8)


def log(batches: list[list[tuple[bytes, bytes | None]]], codec: int = 0) -> bytes:
    data, offset = bytearray(), 0
    for batch in batches:
        records = [
            Record(offset + n, 1_700_000_000_000 + n * 1000, key, value, HEADERS[: n % 2])
            for n, (key, value) in enumerate(batch)
        ]
        data += build_batch(records, codec=codec)
        offset += len(batch) + 1  # Offsets may have gaps.
    return bytes(data)


def replay(records: list[tuple[bytes, bytes | None]]) -> list[object]:
    """State after a replay: last value of each replaced key, and all other records in order."""
    state: dict[bytes, bytes | None] = {}
    seen: list[object] = []
    for key, value in records:
        if key.startswith(REPLACED):
            state[key] = value
        else:
            seen.append((key, value, dict(sorted(state.items()))))
    return [*seen, dict(sorted(state.items()))]


@given(batches=Batches, codec=st.sampled_from([0, Codec.GZIP]))
def test_replaying_a_fold_gives_the_same_state_as_the_full_log(
    batches: list[list[tuple[bytes, bytes | None]]], codec: int
) -> None:
    folded = fold(log(batches, codec), REPLACED)
    kept = [one for step in folded.steps if isinstance(step, list) for one in step]
    assert [one[0] for one in kept] == sorted(one[0] for one in kept)
    assert replay([one[1:] for one in kept]) == replay([one for batch in batches for one in batch])
    offsets = [(one.offset, one.key, one.value) for one in every(log(batches, codec))]
    assert set(kept) <= set(offsets)


def every(data: bytes) -> list[Record]:
    found: list[Record] = []
    position = 0
    while position < len(data):
        batch = Batch.parse(data, position)
        found += read_records(batch, 1 << 20)
        position += batch.size
    return found


def test_batches_beyond_records_max_are_left_for_the_next_call() -> None:
    many = [(b"group", None)] * (RECORDS_MAX // 2)
    data = log([many, many, [(b"o1", b"a")]], Codec.ZSTD)
    folded = fold(data, REPLACED)
    (run,) = folded.steps
    assert isinstance(run, list)
    assert len(run) == RECORDS_MAX
    assert folded.next_offset == RECORDS_MAX + 1  # Each batch of this log leaves a gap.


def test_only_the_last_of_a_run_is_kept() -> None:
    folded = fold(log([[(b"o1", b"a"), (b"o1", b"b")], [(b"g", b"x"), (b"o1", b"c")]]), REPLACED)
    assert folded.steps == [[(1, b"o1", b"b"), (3, b"g", b"x"), (4, b"o1", b"c")]]
    assert folded.next_offset == 5


def test_an_incomplete_batch_is_left_for_the_next_call() -> None:
    data = log([[(b"o1", b"a")], [(b"o2", b"b")]])
    folded = fold(data[:-1], REPLACED)
    assert folded.next_offset == 1
    assert folded.steps == [[(0, b"o1", b"a")]]
    assert fold(data[:70], REPLACED).next_offset is None


def test_transactional_and_unreadable_batches_are_returned_in_place() -> None:
    plain = build_batch([Record(0, 0, b"o1", b"a")])
    odd = build_batch([Record(1, 0, b"o1", b"b")], producer_id=7, is_transactional=True)
    broken = build_batch([Record(2, 0, b"o1", b"c")])
    broken[61] = 200  # The record claims to be longer than its batch.
    last = build_batch([Record(3, 0, b"o1", b"d")])
    folded = fold(bytes(plain + odd + broken + last), REPLACED)
    first, transaction, empty, unreadable, end = folded.steps
    assert (first, empty, end) == ([(0, b"o1", b"a")], [], [(3, b"o1", b"d")])
    assert isinstance(transaction, Batch)
    assert transaction.is_transactional
    assert isinstance(unreadable, Batch)
    assert unreadable.base_offset == 2


@given(data=st.binary(max_size=80), count=st.integers(0, 5))
def test_fold_accepts_and_refuses_the_same_bytes_as_the_record_reader(
    data: bytes, count: int
) -> None:
    batch = Batch(build_batch([Record(0, 0, b"k", b"v")]))
    batch.data = bytes(batch.data[:61]) + data
    batch.count = count
    try:
        expected = [(one.offset, one.key or b"", one.value) for one in read_records(batch, 1000)]
    except BadRecords:
        assert stored(batch) is None
    else:
        assert stored(batch) == expected


def test_fold_skips_headers() -> None:
    count = 100_000
    headers = (("", None),) * count
    batch = Batch(build_batch([Record(3, 0, b"o1", b"v", headers), Record(4, 0, None, None)]))
    del headers
    tracemalloc.start()
    try:
        assert stored(batch) == [(3, b"o1", b"v"), (4, b"", None)]
        assert tracemalloc.get_traced_memory()[1] < 4 * 2 * count
    finally:
        tracemalloc.stop()
