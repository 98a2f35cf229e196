"""Limit of replication bytes per second for throttled replicas (KIP-73).

The rate is measured as in Kafka, over a window of samples including the current one. In-sync
replicas are never throttled; their bytes count.
"""

from collections import deque
from typing import Final

from ottla.model.types import Millis, Monotonic

RATE_MAX: Final = 2**63 - 1  # No limit.


class Throttle:
    """`rate` may change at any time."""

    __slots__ = ("_sample_ms", "_samples", "_samples_max", "_sum", "rate")

    def __init__(
        self, rate: int = RATE_MAX, *, samples_max: int = 11, sample_ms: Millis = 1000
    ) -> None:
        self.rate = rate  # Bytes per second.
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        # Start time and bytes of each sample.
        self._samples: deque[tuple[Monotonic, int]] = deque()
        self._sum = 0

    def record(self, size: int, now: Monotonic) -> None:
        self._forget_old(now)
        self._sum += size
        if self._samples and now - self._samples[-1][0] < self._sample_ms:
            began, before = self._samples.pop()
            self._samples.append((began, before + size))
        else:
            self._samples.append((now, size))

    def is_exceeded(self, now: Monotonic) -> bool:
        return self.free_at(now) is not None

    def free_at(self, now: Monotonic) -> Monotonic | None:
        """When the rate will be below the limit; None if it is now."""
        self._forget_old(now)
        if not self._samples:
            return None
        began = self._samples[0][0]
        elapsed_ms = max(now - began, self._sample_ms)
        if self._sum * 1000 <= self.rate * elapsed_ms:
            return None
        window_ms = self._samples_max * self._sample_ms
        needed_ms = -(-self._sum * 1000 // self.rate) if self.rate else window_ms
        return Monotonic(max(began + min(needed_ms, window_ms), now + 1))

    def _forget_old(self, now: Monotonic) -> None:
        window_ms = self._samples_max * self._sample_ms
        while self._samples and now - self._samples[0][0] >= window_ms:
            self._sum -= self._samples.popleft()[1]
