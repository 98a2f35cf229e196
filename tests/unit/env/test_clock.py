"""The monotonic and the wall clock."""

import time

import pytest

from ottla.env.clock import RealClock


def test_the_monotonic_clock_counts_milliseconds_and_never_goes_back() -> None:
    clock = RealClock()
    seen = [clock.monotonic() for _ in range(1000)]
    assert seen == sorted(seen)
    assert abs(seen[-1] - time.monotonic() * 1000) < 1000


def test_the_clock_that_counts_sleep_goes_at_the_pace_of_the_monotonic_one() -> None:
    clock = RealClock()
    before = clock.counting_sleep() - clock.monotonic()
    assert 0 <= clock.counting_sleep() - clock.monotonic() - before + 1 < 1000


def test_the_wall_clock_counts_milliseconds_since_1970() -> None:
    now = RealClock().wall()
    assert isinstance(now, int)
    assert abs(now - time.time() * 1000) < 1000


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux has a clock of its own.")
def test_the_clock_that_counts_sleep_goes_on_while_the_machine_sleeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept_ns = 3_600_000_000_000
    read = time.clock_gettime_ns

    def after_a_sleep(clock: int) -> int:
        return read(clock) + (slept_ns if clock == time.CLOCK_BOOTTIME else 0)

    clock = RealClock()
    before = clock.counting_sleep() - clock.monotonic()
    monkeypatch.setattr(time, "clock_gettime_ns", after_a_sleep)
    assert clock.counting_sleep() - clock.monotonic() - before >= slept_ns // 1_000_000 - 1
