import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.index import (
    POSITION_MAX,
    BadIndex,
    OffsetIndex,
    TimeIndex,
    last_time_entry,
)


def offsets_of(entries: list[tuple[int, int]], base: int = 100) -> OffsetIndex:
    index = OffsetIndex(base)
    for offset, position in entries:
        index.add(offset, position)
    return index


def times_of(entries: list[tuple[int, int]], base: int = 100) -> TimeIndex:
    index = TimeIndex(base)
    for timestamp, offset in entries:
        index.add_if_later(timestamp, offset)
    return index


GROWING = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000)), max_size=50).map(
    lambda steps: [
        (100 + sum(s[0] for s in steps[: i + 1]), sum(s[1] for s in steps[: i + 1]))
        for i in range(len(steps))
    ]
)


@given(GROWING, st.integers(0, 60_000))
def test_a_lookup_gives_the_last_entry_at_or_before_the_offset(
    entries: list[tuple[int, int]], target: int
) -> None:
    index = OffsetIndex.decode(offsets_of(entries).encode(), 100, 10**6)
    assert index.entries() == entries
    expected = [position for offset, position in entries if offset <= target]
    assert index.position_before(target) == (expected[-1] if expected else 0)


@given(GROWING, st.integers(0, 60_000))
def test_the_time_index_gives_an_offset_before_which_nothing_is_as_late(
    entries: list[tuple[int, int]], target: int
) -> None:
    swapped = [(timestamp, 100 + offset) for timestamp, offset in entries]
    index = TimeIndex.decode(times_of(swapped).encode(), 100)
    assert index.entries() == swapped
    earlier = [offset for timestamp, offset in swapped if timestamp < target]
    assert index.offset_before(target) == (earlier[-1] if earlier else 100)


def test_entries_are_big_endian_as_kafka_writes_them() -> None:
    assert offsets_of([(105, 4096)]).encode().hex() == "0000000500001000"
    assert times_of([(1, 105)]).encode().hex() == "000000000000000100000005"


def test_a_time_that_does_not_grow_is_no_entry() -> None:
    assert times_of([(5, 101), (5, 102), (4, 103), (6, 104)]).entries() == [(5, 101), (6, 104)]


def test_truncation_forgets_what_lies_at_or_past_the_offset() -> None:
    offsets = offsets_of([(110, 10), (120, 20), (130, 30)])
    offsets.truncate_to(120)
    assert offsets.entries() == [(110, 10)]
    times = times_of([(1, 110), (2, 120)])
    times.truncate_to(120)
    assert times.entries() == [(1, 110)]
    assert times.last == (1, 110, -1)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x00" * 7, id="torn"),
        pytest.param(b"\x00" * 80, id="zeros, as a preallocated file has"),
        pytest.param(bytes.fromhex("00000005000010000000000400002000"), id="shrinking offsets"),
        pytest.param(bytes.fromhex("0000000500100000"), id="past the end of the segment"),
    ],
)
def test_an_offset_index_that_cannot_be_is_refused(data: bytes) -> None:
    with pytest.raises(BadIndex):
        OffsetIndex.decode(data, 100, 50_000)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x00" * 11, id="torn"),
        pytest.param(b"\x00" * 24, id="zeros"),
        pytest.param(bytes.fromhex("0000000000000001ffffffff"), id="before the segment"),
    ],
)
def test_a_time_index_that_cannot_be_is_refused(data: bytes) -> None:
    with pytest.raises(BadIndex):
        TimeIndex.decode(data, 100)


def test_the_last_time_entry_is_read_alone() -> None:
    data = times_of([(1, 110), (2, 120)]).encode()
    assert last_time_entry(data[-12:], 100)[:2] == (2, 120)
    assert last_time_entry(b"", 100)[:2] == (-1, 100)


def test_an_offset_beyond_four_bytes_is_looked_up_all_the_same() -> None:
    assert offsets_of([(105, 7)]).position_before(2**40) == 7


def test_a_position_that_four_bytes_cannot_say_is_left_out_of_the_index() -> None:
    index = OffsetIndex(0)
    index.add(1, POSITION_MAX)
    index.add(2, POSITION_MAX + 1)
    assert index.position_before(5) == POSITION_MAX
