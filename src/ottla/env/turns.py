"""How long the turns of the event loop take, and which work made one take too long.

A turn lasts from the return of one poll to the beginning of the next. Its measure is the thread's
CPU time plus the time in blocking calls. Wall time would be wrong: on a machine whose cores are
shared it measures the scheduler. So a turn is timed by the monotonic clock, and from one that was
long the time is subtracted in which the thread was runnable and waited for a core, which Linux
counts (`system.core_wait_seconds`; elsewhere it is taken as 0). That counter is read at most every
`LOOK_SECONDS` and after long turns, so that an ordinary turn costs two looks at the clock.

The work is named by `TurnWatch`, a thread that looks at the loop's stack while a turn lasts long.
"""

import logging
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Final, NamedTuple

from ottla.env.log_limit import LogLimit
from ottla.env.system import core_wait_seconds

logger = logging.getLogger(__name__)

# Upper bounds of the histogram's buckets; Prometheus' own defaults begin too late for a loop.
BUCKET_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
SHORT_SECONDS: Final = BUCKET_SECONDS[0]
WARN_SECONDS: Final = 0.1
LOOK_SECONDS: Final = 0.02
# Two looks of the watch at each turn that is worth a warning.
WATCH_INTERVAL_SECONDS: Final = 0.05
WATCHED_SECONDS: Final = 0.025
FRAMES_NAMED_MAX: Final = 5


class Histogram(NamedTuple):
    """Counts by bucket, the last one for what is beyond all bounds; and the sum of all values."""

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float


class Turns:
    """The turns of one loop; `began` and `ended` are called by its selector, in its thread."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        core_wait: Callable[[], float] = core_wait_seconds,
    ) -> None:
        self.number = 0
        self.started = 0.0  # Of the present turn; 0 while the loop polls.
        self.work: Counter[str] = Counter()  # Where the watch saw the present turn.
        self._clock = clock
        self._core_wait = core_wait
        self._looked_at = float("-inf")
        self._waited = 0.0  # For a core, when it was looked at.
        self._counts = [0] * (len(BUCKET_SECONDS) + 1)
        self._sum = 0.0
        self._warnings = LogLimit(clock)

    def began(self) -> None:
        now = self.started = self._clock()
        if now - self._looked_at > LOOK_SECONDS:
            self._look(now)

    def ended(self) -> None:
        started = self.started
        if started:
            now = self._clock()
            self.started = 0.0
            self.number += 1
            if now - started < SHORT_SECONDS:
                self._counts[0] += 1
                self._sum += now - started
            else:
                self._long_one_ended(now, now - started)

    def histogram(self) -> Histogram:
        return Histogram(BUCKET_SECONDS, list(self._counts), self._sum)

    def _look(self, now: float) -> None:
        self._looked_at = now
        self._waited = self._core_wait()

    def _long_one_ended(self, now: float, seconds: float) -> None:
        waited = self._waited
        self._look(now)
        seconds = max(seconds - (self._waited - waited), 0.0)
        self._counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self._sum += seconds
        if seconds > WARN_SECONDS and self._warnings.admits():
            work = self.work.most_common(1)
            logger.warning(
                "a turn of the event loop took %d ms, in which nothing else was served: %s%s",
                round(seconds * 1000),
                work[0][0] if work else "the work is unknown",
                self._warnings.suppressed(),
            )
        self.work.clear()


class TurnWatch:
    """A thread that notes where the loop's thread is while a turn lasts long."""

    def __init__(self, turns: Turns, thread_id: int) -> None:
        self._turns = turns
        self._thread_id = thread_id
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla-turn-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        turns = self._turns
        while not self._stopped.wait(WATCH_INTERVAL_SECONDS):
            number, started = turns.number, turns.started
            if started and time.monotonic() - started > WATCHED_SECONDS:
                work = described(sys._current_frames().get(self._thread_id))
                if turns.number == number:  # Else the stack is another turn's.
                    turns.work[work] += 1


def described(frame: FrameType | None) -> str:
    """The innermost calls of ours in a stack, the innermost first."""
    calls: list[str] = []
    while frame is not None and len(calls) < FRAMES_NAMED_MAX:
        _, separator, path = frame.f_code.co_filename.rpartition("/ottla/")
        if separator:
            calls.append(f"{path}:{frame.f_lineno} {frame.f_code.co_qualname}")
        frame = frame.f_back
    return ", called by ".join(calls) or "no code of the broker's"
