"""Writes down what clients do, from any thread, while they do it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ottla.simulation.history.operations import Key, Kind, Operation, Outcome, Step, to_lines


@dataclass(frozen=True, slots=True)
class Begun:
    index: int
    process: str
    kind: Kind
    began_ns: int
    steps: Sequence[Step]


class Recorder:
    """Single calls on lists, dicts and counters are atomic, so that there is no lock."""

    def __init__(self) -> None:
        self.began_ns = time.monotonic_ns()
        self.operations: list[Operation] = []
        self._indexes = count()
        self._open: dict[int, Begun] = {}

    def now_ns(self) -> int:
        return time.monotonic_ns() - self.began_ns

    def begin(self, process: str, kind: Kind, *steps: Step) -> Begun:
        begun = Begun(next(self._indexes), process, kind, self.now_ns(), steps)
        self._open[begun.index] = begun
        return begun

    def end(
        self, begun: Begun, outcome: Outcome, *steps: Step, rebalanced: Sequence[Key] = ()
    ) -> None:
        if self._open.pop(begun.index, None) is None:
            return  # The run was over before it was answered.
        self._note(begun, outcome, steps or begun.steps, tuple(rebalanced))

    def drop(self, begun: Begun) -> None:
        """Nothing came of it, and nothing can have."""
        self._open.pop(begun.index, None)

    def at_once(self, process: str, kind: Kind, *steps: Step) -> None:
        self.end(self.begin(process, kind, *steps), Outcome.OK)

    def close(self) -> None:
        """What is still under way may come to pass or not."""
        for begun in list(self._open.values()):
            if self._open.pop(begun.index, None) is not None:
                self._note(begun, Outcome.INFO, begun.steps, ())

    def write(self, path: Path) -> None:
        with path.open("w") as file:
            file.writelines(f"{line}\n" for line in to_lines(self.operations))

    def _note(
        self, begun: Begun, outcome: Outcome, steps: Sequence[Step], rebalanced: Sequence[Key]
    ) -> None:
        self.operations.append(
            Operation(
                index=begun.index,
                process=begun.process,
                outcome=outcome,
                kind=begun.kind,
                began_ns=begun.began_ns,
                ended_ns=self.now_ns(),
                steps=steps,
                rebalanced=rebalanced,
            )
        )
