"""The clocks: monotonic for every wait, wall for what is written into records.

The monotonic clock stands still while a machine sleeps. For what we expect of others that is right:
after a sleep they get the rest of their time, and nobody is fenced or expelled from a group for our
own silence. What others may have decided about us is judged by the clock that counts sleep.
"""

import time
from typing import Final, Protocol

from ottla.model.types import Monotonic, WallTime


class Clock(Protocol):
    def monotonic(self) -> Monotonic: ...
    def counting_sleep(self) -> Monotonic:
        """Like `monotonic`, with another start; goes on while the machine sleeps."""

    def wall(self) -> WallTime: ...


# Linux has a clock of its own for it; on macOS this one goes on, and `time.monotonic` is another.
_COUNTING_SLEEP: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class RealClock:
    def monotonic(self) -> Monotonic:
        return Monotonic(time.monotonic_ns() // 1_000_000)

    def counting_sleep(self) -> Monotonic:
        return Monotonic(time.clock_gettime_ns(_COUNTING_SLEEP) // 1_000_000)

    def wall(self) -> WallTime:
        # Every produce asks; `WallTime(...)` would be a call that costs as much as the clock.
        return time.time_ns() // 1_000_000  # type: ignore[return-value]
