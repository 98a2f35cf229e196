"""The clocks in virtual time. They show the loop's time; the wall clock may be set wrong."""

from ottla.model.types import Monotonic, WallTime
from ottla.simulation.world.loop import MILLISECOND, VirtualLoop

WALL_START_MS = 1_700_000_000_000  # Some day in November 2023: any day, but always the same.


class VirtualClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self.skew_ms = 0  # Only of the wall clock.
        self.slept_ms = 0  # How long the machine has slept, which the monotonic clock leaves out.
        self._loop = loop

    def monotonic(self) -> Monotonic:
        return Monotonic(self._loop.now_ns // MILLISECOND)

    def counting_sleep(self) -> Monotonic:
        return Monotonic(self.monotonic() + self.slept_ms)

    def wall(self) -> WallTime:
        return WallTime(WALL_START_MS + self._loop.now_ns // MILLISECOND + self.skew_ms)
