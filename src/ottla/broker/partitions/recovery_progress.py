"""Tells whoever waits for a start how far the recovery of a log directory has come."""

import logging

from ottla.env.clock import Clock

logger = logging.getLogger(__name__)

TOLD_EVERY_MS = 2_000


class RecoveryProgress:
    """Called with how far a segment is scanned; says something only when it takes long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_at = clock.monotonic()

    def __call__(self, path: str, bytes_done: int, bytes_all: int) -> None:
        now = self._clock.monotonic()
        if now - self._told_at >= TOLD_EVERY_MS:
            self._told_at = now
            logger.info(
                "recovering %s: %d of %d MB scanned", path, bytes_done >> 20, bytes_all >> 20
            )
