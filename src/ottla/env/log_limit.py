"""A bound on how often a kind of event is logged, so that no peer can fill the log."""

from collections.abc import Callable

INTERVAL_SECONDS = 10.0


class LogLimit:
    """One line per interval; the events between are counted and told with the next line."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now  # Monotonic, in seconds.
        self._next_at = float("-inf")
        self._suppressed = 0

    def admits(self) -> bool:
        """True if this event is to be logged."""
        now = self._now()
        if now < self._next_at:
            self._suppressed += 1
            return False
        self._next_at = now + INTERVAL_SECONDS
        return True

    def suppressed(self) -> str:
        """What to append to the line: how many events since the last one were not logged."""
        count, self._suppressed = self._suppressed, 0
        return f" ({count} more since the last such line)" if count else ""
