from dataclasses import replace
from itertools import product

import pytest

from ottla.model.types import WallTime
from ottla.storage.config import LogConfig
from ottla.storage.index import RELATIVE_OFFSET_MAX
from ottla.storage.open_files import OpenFiles
from ottla.storage.roll_policy import Rolling, next_base_offset
from ottla.storage.segment import Segment
from tests.unit.storage.making import DIRECTORY, NOW, make_batch, make_disk

CONFIG = LogConfig(segment_bytes=1000, segment_ms=10_000)


def segment_with(*timestamps: int, created_ms: int = NOW) -> Segment:
    disk = make_disk()
    segment = Segment(OpenFiles(disk), DIRECTORY, 0, created_ms=created_ms)
    segment.activate(disk.open(segment.log_path, create=True))
    segment.reset()
    for timestamp in timestamps:
        batch = make_batch(timestamp=timestamp)
        batch.assign(segment.next_offset, 0)
        segment.append([batch.placed])
    return segment


def rolls(
    segment: Segment,
    config: LogConfig = CONFIG,
    *,
    timestamp: int = NOW,
    now: int = NOW,
    size: int = 100,
    base_offset: int = 10,
) -> bool:
    batch = make_batch(timestamp=timestamp, size=size)
    batch.base_offset = base_offset
    return Rolling().must_roll(segment, config, [batch.placed], batch.size, WallTime(now))


def test_a_segment_rolls_when_the_next_batch_does_not_fit() -> None:
    segment = segment_with(NOW, NOW)
    room = 1000 - segment.size
    overhead = make_batch(size=100).size - 100
    assert not rolls(segment, size=room - overhead)
    assert rolls(segment, size=room - overhead + 1)


def test_an_empty_segment_takes_anything() -> None:
    assert not rolls(segment_with(), size=5000, now=NOW + 10**9)


def test_age_counts_in_the_time_of_the_records() -> None:
    segment = segment_with(NOW)
    assert not rolls(segment, timestamp=NOW + 10_000, now=NOW + 10**9)
    assert rolls(segment, timestamp=NOW + 10_001, now=NOW)


def test_age_counts_in_our_time_where_records_have_none() -> None:
    segment = segment_with(-1)
    assert not rolls(segment, timestamp=-1, now=NOW + 10_000)
    assert rolls(segment, timestamp=-1, now=NOW + 10_001)


def test_jitter_shortens_the_age_but_never_lengthens_it() -> None:
    config = replace(CONFIG, segment_jitter_ms=9_000)
    segment = segment_with(NOW)
    first = next(age for age in range(0, 10_002) if rolls(segment, config, timestamp=NOW + age))
    assert 1_000 < first <= 10_001
    assert rolls(segment, config, timestamp=NOW + 10_001)


def test_a_full_index_rolls() -> None:
    assert rolls(segment_with(NOW), replace(CONFIG, segment_index_bytes=7))


def test_an_offset_that_does_not_fit_four_bytes_rolls() -> None:
    segment = segment_with(NOW)
    assert not rolls(segment, base_offset=2**31 - 1)
    assert rolls(segment, base_offset=2**31)


OTHER = replace(CONFIG, segment_bytes=200)
STEPS = ((NOW, CONFIG), (NOW + 10_001, CONFIG), (NOW + 1, OTHER), (-1, CONFIG), None)


@pytest.mark.parametrize("index_bytes", [24, 1000])
def test_what_is_remembered_of_a_segment_decides_as_a_fresh_look_does(index_bytes: int) -> None:
    """Every way of five appends and cuts."""
    for steps in product(STEPS, repeat=5):
        segment, rolling = segment_with(), Rolling()
        segment.index_interval_bytes = 50
        for step in steps:
            if step is None:
                segment.truncate_to(0)
                continue
            batch = make_batch(timestamp=step[0], size=10)
            batch.assign(segment.next_offset, 0)
            config = CONFIGS[step[1], index_bytes]
            now = WallTime(NOW if step[0] >= 0 else NOW + 20_000)
            what = (segment, config, [batch.placed], batch.size, now)
            must = rolling.must_roll(*what)
            assert must == Rolling().must_roll(*what), steps
            if must:
                break
            segment.append([batch.placed])


CONFIGS = {
    (config, size): replace(config, segment_index_bytes=size)
    for config in (CONFIG, OTHER)
    for size in (24, 1000)
}


def test_a_segment_begins_where_all_of_its_first_batch_has_relative_offsets() -> None:
    segment = segment_with(NOW)
    last = segment.next_offset + RELATIVE_OFFSET_MAX
    assert next_base_offset(segment, make_batch(3, base_offset=last - 2).placed) == 1
    beyond = make_batch(3, base_offset=last - 1)
    assert next_base_offset(segment, beyond.placed) == beyond.base_offset
