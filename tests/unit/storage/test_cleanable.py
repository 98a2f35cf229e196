"""How dirty a log is, and how far it may be cleaned."""

from dataclasses import replace

from ottla.model.types import WallTime
from ottla.storage.cleanable import Cleanable, cleanable, first_dirty, grouped
from ottla.storage.log import Log
from ottla.storage.open_files import OpenFiles
from ottla.storage.segment import Segment
from tests.unit.storage.making import DIRECTORY, NOW, SMALL, make_batch, make_disk, open_log, put

COMPACTED = replace(SMALL, is_compacted=True, is_deleted=False)


def filled(**changes: int) -> Log:
    """Segments of six batches of one record each."""
    log = open_log(make_disk(), replace(COMPACTED, **changes))
    for n in range(20):
        put(log, make_batch(size=80, timestamp=NOW + n))
    assert [segment.base_offset for segment in log.segments] == [0, 6, 12, 18]
    return log


def of(log: Log, cleaned_to: int | None = None, stable: int = 20, now: int = NOW) -> Cleanable:
    return cleanable(log, cleaned_to, stable, WallTime(now))


def test_all_but_the_active_segment_is_dirty_at_first() -> None:
    log = filled()
    part = of(log)
    assert (part.first_dirty, part.end) == (0, 18)
    assert (part.clean_bytes, part.ratio) == (0, 1.0)
    assert part.dirty_bytes == sum(segment.size for segment in log.segments[:-1])


def test_what_was_cleaned_counts_as_clean() -> None:
    part = of(filled(), cleaned_to=12)
    assert (part.first_dirty, part.end) == (12, 18)
    assert round(part.ratio, 2) == 0.33
    assert part.is_worth_it(0.3)
    assert not part.is_worth_it(0.5)


def test_a_log_with_nothing_new_is_never_worth_it() -> None:
    part = of(filled(), cleaned_to=18)
    assert (part.first_dirty, part.end, part.dirty_bytes) == (18, 18, 0)
    assert not part.is_worth_it(0.0)
    empty = of(open_log(make_disk(), COMPACTED), stable=0)
    assert empty.ratio == 0
    assert not empty.is_worth_it(0.0)


def test_nothing_at_or_past_the_last_stable_offset_is_cleaned() -> None:
    log = filled()
    assert of(log, stable=13).end == 12
    assert of(log, stable=12).end == 12
    assert of(log, stable=11).end == 6
    assert of(log, stable=3).end == 0
    assert of(log, cleaned_to=12, stable=3).end == 12


def test_a_checkpoint_outside_the_log_counts_for_nothing() -> None:
    log = filled()
    assert first_dirty(log, None) == 0
    assert first_dirty(log, 20) == 20
    assert first_dirty(log, 21) == 0
    log.advance_log_start(7)
    assert first_dirty(log, 5) == 7


def test_records_are_safe_until_the_least_lag_is_over() -> None:
    log = filled(compaction_lag_ms_min=1000)
    assert of(log, now=NOW + 1000).end == 0
    assert of(log, now=NOW + 1005).end == 6
    assert of(log, now=NOW + 1016).end == 12
    assert of(log, now=NOW + 5000).end == 18


def test_the_greatest_lag_makes_it_due_however_little_is_dirty() -> None:
    log = filled(compaction_lag_ms_max=1000)
    assert not of(log, cleaned_to=12, now=NOW + 1012).is_due
    part = of(log, cleaned_to=12, now=NOW + 1013)
    assert part.is_due
    assert part.is_worth_it(0.99)
    assert not of(log, cleaned_to=18, now=NOW + 10**6).is_worth_it(0.99)


def test_small_neighbours_become_one_segment() -> None:
    log = filled()
    segments = log.segments[:-1]
    size = segments[0].size
    groups = grouped(segments, segment_bytes=2 * size, index_bytes=10_000, end=18)
    assert [[each.base_offset for each in group] for group in groups] == [[0, 6], [12]]
    alone = grouped(segments, segment_bytes=2 * size - 1, index_bytes=10_000, end=18)
    assert [len(group) for group in alone] == [1, 1, 1]
    narrow = grouped(segments, segment_bytes=10 * size, index_bytes=0, end=18)
    assert [len(group) for group in narrow] == [1, 1, 1]


def test_offsets_that_do_not_fit_one_index_stay_apart() -> None:
    files = OpenFiles(make_disk())
    bases = (0, 10, 2**31 - 1, 2**31 + 5)
    segments = [Segment(files, DIRECTORY, base) for base in bases]
    for segment in segments:
        segment.size = 100
    groups = grouped(segments, segment_bytes=10**6, index_bytes=10**6, end=2**31 + 9)
    assert [[each.base_offset for each in group] for group in groups] == [
        [0, 10],
        [2**31 - 1, 2**31 + 5],
    ]
