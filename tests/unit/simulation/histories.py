"""Histories for the tests of the checkers: each operation takes one tick, one after the other."""

from collections.abc import Sequence

from ottla.simulation.history.operations import (
    Key,
    Kind,
    Operation,
    Outcome,
    Poll,
    Send,
    Step,
    Value,
)

KEY = "events-0"


class HistoryWriter:
    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def add(
        self,
        kind: Kind,
        *steps: Step,
        process: str = "p",
        outcome: Outcome = Outcome.OK,
        rebalanced: Sequence[Key] = (),
        began_ns: int | None = None,
        ended_ns: int | None = None,
    ) -> "HistoryWriter":
        index = len(self.operations)
        began = 10 * index if began_ns is None else began_ns
        ended = began + 9 if ended_ns is None else ended_ns
        self.operations.append(
            Operation(index, process, outcome, kind, began, ended, steps, rebalanced)
        )
        return self

    def send(
        self,
        value: Value,
        offset: int | None = None,
        *,
        process: str = "p",
        outcome: Outcome = Outcome.OK,
    ) -> "HistoryWriter":
        step = Send(KEY, value, offset)
        return self.add(Kind.SEND, step, process=process, outcome=outcome)

    def sent(self, *values: Value, process: str = "p") -> "HistoryWriter":
        """Acknowledged one after the other, at offsets from 0 on."""
        for offset, value in enumerate(values):
            self.send(value, offset, process=process)
        return self

    def poll(
        self,
        *found: tuple[int, Value],
        process: str = "c",
        rebalanced: Sequence[Key] = (),
    ) -> "HistoryWriter":
        return self.add(Kind.POLL, Poll({KEY: found}), process=process, rebalanced=rebalanced)

    def drain(self, *found: tuple[int, Value]) -> "HistoryWriter":
        return self.add(Kind.DRAIN, Poll({KEY: found}), process="drain")
