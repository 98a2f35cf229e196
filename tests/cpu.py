"""CPU time of a piece of work, in seconds of a reference machine.

A shared machine may run at half its speed for a while. So the work is repeated, the fastest round
counts, and it is scaled by a fixed loop that is timed beside it.
"""

from collections.abc import Callable
from time import thread_time

ROUNDS = 3
REFERENCE_SECONDS = 0.0055  # The fixed loop, on an idle machine of 2026.


def cpu_seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Scaled CPU seconds of this thread in the fastest of some rounds of `work`."""
    return min(_scaled(work) for _ in range(rounds))


def _scaled(work: Callable[[], object]) -> float:
    before = _timed(_fixed_loop)
    seconds = _timed(work)
    slowness = (before + _timed(_fixed_loop)) / 2 / REFERENCE_SECONDS
    return seconds / max(slowness, 1.0)


def _timed(work: Callable[[], object]) -> float:
    began = thread_time()
    work()
    return thread_time() - began


def _fixed_loop() -> int:
    table: dict[int, int] = {}
    for number in range(60_000):
        table[number & 1023] = table.get(number & 511, 0) + number
    return len(table)
