from dataclasses import replace

import pytest

from ottla.model.types import WallTime
from ottla.storage.config import LogConfig
from ottla.storage.retention import deletable
from tests.unit.storage.making import (
    NOW,
    fill,
    make_batch,
    make_disk,
    open_log,
    put,
    read_all,
    retain,
)

CONFIG = LogConfig(segment_bytes=400, retention_ms=-1)


def count(config: LogConfig, *, now: int = NOW, start: int = 0, watermark: int = 8) -> int:
    """Of four segments with two records each, whose timestamps are NOW + offset."""
    log = open_log(make_disk(), CONFIG)
    for offset in range(8):
        put(log, make_batch(timestamp=NOW + offset))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    return deletable(
        log.segments, config, WallTime(now), log_start_offset=start, high_watermark=watermark
    )


def test_without_bounds_nothing_goes() -> None:
    assert count(CONFIG, now=NOW + 10**12) == 0


@pytest.mark.parametrize(("age", "expected"), [(101, 0), (102, 1), (106, 3), (107, 3), (108, 4)])
def test_a_segment_goes_when_its_last_record_is_too_old(age: int, expected: int) -> None:
    assert count(replace(CONFIG, retention_ms=100), now=NOW + age) == expected


@pytest.mark.parametrize(("keep", "expected"), [(8, 0), (7, 0), (6, 1), (5, 1), (1, 3), (0, 4)])
def test_the_oldest_go_while_what_remains_is_still_large_enough(keep: int, expected: int) -> None:
    record_bytes = make_batch().size
    assert count(replace(CONFIG, retention_bytes=keep * record_bytes)) == expected


@pytest.mark.parametrize(("start", "expected"), [(1, 0), (2, 1), (5, 2), (8, 3)])
def test_segments_below_the_start_of_the_log_go(start: int, expected: int) -> None:
    assert count(CONFIG, start=start) == expected


@pytest.mark.parametrize(("watermark", "expected"), [(1, 0), (3, 1), (7, 3), (8, 4)])
def test_what_is_not_replicated_stays(watermark: int, expected: int) -> None:
    assert count(replace(CONFIG, retention_bytes=0), watermark=watermark) == expected


def test_a_compacted_topic_keeps_what_is_old() -> None:
    config = replace(CONFIG, retention_ms=1, retention_bytes=0, is_deleted=False)
    assert count(config, now=NOW + 10**9) == 0
    assert count(config, start=4) == 2


def test_records_without_timestamps_are_as_old_as_their_file() -> None:
    disk = make_disk()
    disk.now_ms = NOW
    config = replace(CONFIG, retention_ms=100)
    log = open_log(disk, config)
    for _ in range(4):
        put(log, make_batch(timestamp=-1))
    assert len(log.segments) == 2
    for age, expected in ((100, 0), (101, 2)):
        assert (
            deletable(
                log.segments,
                config,
                WallTime(NOW + age),
                log_start_offset=0,
                high_watermark=log.end_offset,
            )
            == expected
        )


def test_the_only_segment_stays_while_a_batch_for_it_is_staged() -> None:
    log = open_log(make_disk(), LogConfig(retention_ms=1000))
    fill(log, 2)
    log.stage(make_batch(), 0)
    later = NOW + 10**9
    assert retain(log, later, 2) == 0
    log.flush(WallTime(NOW))
    assert [batch.base_offset for batch in read_all(log)] == [0, 1, 2]
    assert retain(log, later, 3) == 1
    assert log.log_start_offset == 3
