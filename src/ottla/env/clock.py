"""The clocks: monotonic for every wait, wall for timestamps in records.

The monotonic clock stops while the machine sleeps. That is right for timeouts of others: after a
sleep they get the rest of their time, and no broker is fenced and no member expelled because this
machine slept. Decisions of others about us are judged by the clock that counts sleep.
"""

import time
from typing import Final, Protocol

from ottla.model.types import Monotonic, WallTime


class Clock(Protocol):
    def monotonic(self) -> Monotonic: ...
    def counting_sleep(self) -> Monotonic:
        """Like `monotonic`, with another origin; continues while the machine sleeps."""

    def wall(self) -> WallTime: ...


# Linux has a separate clock for it; on macOS CLOCK_MONOTONIC counts sleep, and `time.monotonic`
# does not.
_COUNTING_SLEEP: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class RealClock:
    def monotonic(self) -> Monotonic:
        return Monotonic(time.monotonic_ns() // 1_000_000)

    def counting_sleep(self) -> Monotonic:
        return Monotonic(time.clock_gettime_ns(_COUNTING_SLEEP) // 1_000_000)

    def wall(self) -> WallTime:
        # Called for every produce; `WallTime(...)` would double its cost.
        return time.time_ns() // 1_000_000  # type: ignore[return-value]
