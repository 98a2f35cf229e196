"""The time that disk operations take, and the turns of a loop that they make long.

An operation on the loop keeps its whole process waiting, as a blocking call does. An operation of a
worker is a point where the loop may go on. A turn of the loop of a serving broker that makes more
than a few slow calls is noted in `long_turns`: each further file would make it longer.
"""

from collections.abc import Callable
from random import Random
from typing import Final

from ottla.simulation.world.loop import MICROSECOND
from ottla.simulation.world.process import PROCESS, Process
from ottla.simulation.world.stepped_work import SteppedWork
from ottla.simulation.world.workers import SimulatedWorkers
from ottla.storage.run_marks import BROKER_EPOCH, MOUNT_ID

SLOW_CALLS_PER_TURN_MAX: Final = 4  # A swap of segments makes four.
SLOW_CALLS: Final = frozenset(
    {"sync", "sync_directory", "sync_filesystem", "remove", "remove_directory"}
)
REMOVED_ONCE: Final = (BROKER_EPOCH, MOUNT_ID)  # When a log directory fails, with what failed.
CALL_NS_MEAN: Final = {  # Exponentially distributed; of all others OTHER_NS_MEAN.
    "sync": 500 * MICROSECOND,
    "sync_directory": 500 * MICROSECOND,
    "sync_filesystem": 2_000 * MICROSECOND,
    "remove": 50 * MICROSECOND,
    "remove_directory": 50 * MICROSECOND,
    "list": 50 * MICROSECOND,
    "rename": 20 * MICROSECOND,
}
OTHER_NS_MEAN: Final = 5 * MICROSECOND


class DiskCosts:
    def __init__(self, source: Random, factor: int, is_serving: Callable[[], bool]) -> None:
        """`factor` multiplies every cost: a slow disk."""
        self.long_turns: list[str] = []
        self._random = source
        self._factor = factor
        self._is_serving = is_serving
        self._turn: tuple[Process, int] | None = None
        self._slow_calls: list[str] = []

    def began(self, operation: str, path: str) -> None:
        process = PROCESS.get()
        if process is None:
            return  # A checker looks at the disk.
        if SimulatedWorkers.is_at_work:
            if SteppedWork.current is not None and self._random.random() < 0.5:
                SteppedWork.current.pause()
            return
        mean = CALL_NS_MEAN.get(operation, OTHER_NS_MEAN) * self._factor
        process.charge(int(self._random.expovariate(1 / mean)) + 1)
        is_slow = operation in SLOW_CALLS and not path.endswith(REMOVED_ONCE)
        if is_slow and self._is_serving():
            self._count(process, f"{operation} {path}")

    def _count(self, process: Process, call: str) -> None:
        turn = process, process.turns
        if turn != self._turn:
            self._turn, self._slow_calls = turn, []
        self._slow_calls.append(call)
        if len(self._slow_calls) == SLOW_CALLS_PER_TURN_MAX + 1:
            self.long_turns.append(f"{process.name}: {', '.join(self._slow_calls)} in one turn")
