"""The two clocks: one never goes back, the other says what day it is."""

import time

from ottla.env.clock import RealClock


def test_the_monotonic_clock_counts_milliseconds_and_never_goes_back() -> None:
    clock = RealClock()
    seen = [clock.monotonic() for _ in range(1000)]
    assert seen == sorted(seen)
    assert abs(seen[-1] - time.monotonic() * 1000) < 1000


def test_the_wall_clock_counts_milliseconds_since_1970() -> None:
    now = RealClock().wall()
    assert isinstance(now, int)
    assert abs(now - time.time() * 1000) < 1000
