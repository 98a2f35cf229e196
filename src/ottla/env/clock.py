"""The two clocks: monotonic for every wait, wall for what is written into records."""

import time
from typing import Protocol

from ottla.model.types import Monotonic, WallTime


class Clock(Protocol):
    def monotonic(self) -> Monotonic: ...
    def wall(self) -> WallTime: ...


class RealClock:
    def monotonic(self) -> Monotonic:
        return Monotonic(time.monotonic_ns() // 1_000_000)

    def wall(self) -> WallTime:
        # Every produce asks; `WallTime(...)` would be a call that costs as much as the clock.
        return time.time_ns() // 1_000_000  # type: ignore[return-value]
