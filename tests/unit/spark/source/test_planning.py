from hypothesis import given
from hypothesis import strategies as st

from ottla.model.types import TopicPartition
from ottla.spark.source.planning import Range, limited, limited_by_bytes, split


def ranges(*sizes: int) -> list[Range]:
    return [Range(TopicPartition("t", n), 100, 100 + size) for n, size in enumerate(sizes)]


SIZES = st.lists(st.integers(0, 10**6), min_size=1, max_size=20)


@given(SIZES, st.integers(1, 10**6))
def test_a_limit_is_used_up_and_never_passed(sizes: list[int], limit: int) -> None:
    given_ranges = ranges(*sizes)
    ends = limited(given_ranges, limit)
    taken = {one.place: ends[one.place] - one.start for one in given_ranges}
    assert all(0 <= taken[one.place] <= one.size for one in given_ranges)
    assert sum(taken.values()) == min(limit, sum(sizes))


def test_no_partition_starves_beside_a_large_one() -> None:
    ends = limited(ranges(1_000_000, 1, 1), 10)
    assert [end - 100 for end in ends.values()] == [8, 1, 1]


def test_bytes_are_shared_by_what_rows_weigh() -> None:
    large, small = ranges(1000, 1000)
    ends = limited_by_bytes([large, small], 110_000, {large.place: 1000.0, small.place: 100.0})
    assert [ends[one.place] - 100 for one in (large, small)] == [100, 100]
    huge = limited_by_bytes([large], 5, {large.place: 1000.0})
    assert huge[large.place] == 101, "a stream must get on, however large a record is"
    whole = limited_by_bytes([large], 10**9, {large.place: 1000.0})
    assert whole[large.place] == 1100


@given(SIZES, st.integers(1, 60) | st.none(), st.integers(1, 10**5) | st.none())
def test_tasks_cover_every_offset_once(
    sizes: list[int], partitions_min: int | None, records_max: int | None
) -> None:
    if records_max is not None:
        records_max = max(records_max, sum(sizes) // 500 + 1)
    given_ranges = ranges(*sizes)
    tasks = split(given_ranges, partitions_min=partitions_min, records_max=records_max)
    for one in given_ranges:
        pieces = sorted(task for task in tasks if task.place == one.place)
        assert sum(piece.size for piece in pieces) == one.size
        edge = one.start
        for piece in pieces:
            assert piece.start == edge
            assert piece.size > 0
            edge = piece.end
    if records_max is not None:
        assert all(task.size <= records_max for task in tasks)
    if partitions_min is not None:
        assert len(tasks) >= min(partitions_min, sum(sizes))


def test_the_largest_partitions_are_cut() -> None:
    tasks = split(ranges(900, 100), partitions_min=4, records_max=None)
    assert [task.size for task in tasks] == [300, 300, 300, 100]
