"""Bytes per second, over a window of samples."""

import pytest

from ottla.model.types import Monotonic
from ottla.replication.throttle import Throttle


def test_without_a_rate_nothing_waits() -> None:
    throttle = Throttle()
    throttle.record(1 << 40, Monotonic(0))
    assert throttle.free_at(Monotonic(0)) is None


def test_bytes_beyond_the_rate_delay_the_next() -> None:
    throttle = Throttle(1000)
    throttle.record(500, Monotonic(0))
    assert not throttle.is_exceeded(Monotonic(10))
    throttle.record(2500, Monotonic(20))
    assert throttle.free_at(Monotonic(20)) == 3000
    assert throttle.is_exceeded(Monotonic(2999))
    assert not throttle.is_exceeded(Monotonic(3000))


def test_a_burst_is_forgotten_with_its_window() -> None:
    throttle = Throttle(1000, samples_max=3, sample_ms=1000)
    throttle.record(1_000_000, Monotonic(0))
    assert throttle.free_at(Monotonic(5)) == 3000
    throttle.record(10, Monotonic(1500))
    assert not throttle.is_exceeded(Monotonic(3000))


def test_rate_zero_blocks_after_the_first_bytes() -> None:
    throttle = Throttle(0)
    assert not throttle.is_exceeded(Monotonic(0))
    throttle.record(1, Monotonic(0))
    assert throttle.free_at(Monotonic(1)) == 11_000


@pytest.mark.parametrize("piece", [100, 1000, 50_000])
def test_over_time_the_rate_holds(piece: int) -> None:
    throttle, now, sent = Throttle(10_000), 0, 0
    while now < 120_000:
        free_at = throttle.free_at(Monotonic(now))
        if free_at is None:
            throttle.record(piece, Monotonic(now))
            sent += piece
            now += 1
        else:
            assert free_at > now
            now = free_at
    assert sent == pytest.approx(10_000 * 120, rel=0.15, abs=piece)


def test_changed_rate_takes_effect_at_once() -> None:
    throttle = Throttle(10)
    throttle.record(5000, Monotonic(0))
    assert throttle.is_exceeded(Monotonic(1))
    throttle.rate = 10_000
    assert not throttle.is_exceeded(Monotonic(1))
