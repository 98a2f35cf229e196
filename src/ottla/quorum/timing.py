"""How long the quorum waits for what, and how chance keeps voters from standing at once."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.model.types import Millis

# A random number from 0 up to, not including, the argument.
Below = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Timing:
    election_timeout_ms: Millis = 1000
    fetch_timeout_ms: Millis = 2000
    election_backoff_ms_max: Millis = 1000
    request_timeout_ms: Millis = 2000
    retry_backoff_ms: Millis = 20
    fetch_wait_ms: Millis = 500
    fetch_bytes_max: int = 1024 * 1024
    snapshot_bytes_max: int = 1024 * 1024
    # A pre-vote harms nobody, so a voter that starts, or whose leader closed the connection, need
    # not wait for long: only so that two of them do not stand in the same moment.
    hint_ms_max: Millis = 100
    turn_ms: Millis = 40  # An election takes less.

    def election_timeout(self, below: Below) -> Millis:
        """Between one and two timeouts."""
        return self.election_timeout_ms + below(max(self.election_timeout_ms, 1))

    def hint(self, below: Below, elections_lost: int) -> Millis:
        """Soon; later each time that it came to nothing."""
        span = min(self.hint_ms_max << min(elections_lost, 10), self.election_timeout_ms)
        return below(max(span, 1))

    def turn(self, below: Below, elections_lost: int, place: int) -> Millis:
        """Until a voter stands whose leader closed the connection: one after the other at first."""
        if elections_lost:
            return self.hint(below, elections_lost)
        return place * self.turn_ms + below(max(self.turn_ms // 2, 1))

    def backoff(self, below: Below, elections_lost: int) -> Millis:
        """After a lost election, doubling its range each time."""
        span = min(
            self.retry_backoff_ms << min(elections_lost + 2, 12), self.election_backoff_ms_max
        )
        return self.retry_backoff_ms + below(max(span, 1))

    def retry(self, failures: int) -> Millis:
        """Until a request that failed is sent again, doubling up to a second or so."""
        return self.retry_backoff_ms << min(failures, 5)
