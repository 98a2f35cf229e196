"""What one partition holds, as far as any client was told: by polls, and by acknowledged sends.

Offsets of which nobody knows a value (markers, records that compaction removed, sends that nobody
read) do not count: the others are numbered one after the other, and that number is a record's
`place`. Two clients may contradict each other; then an offset has several values.
"""

from ottla.model.types import Offset
from ottla.simulation.history.operations import Operation, Value


class ObservedLog:
    def __init__(self) -> None:
        self.writers: dict[Value, Operation] = {}
        self.readers: dict[Value, Operation] = {}  # The first to read each.
        self.values: dict[Offset, dict[Value, Operation]] = {}  # And who said so first.
        self.offsets: dict[Value, list[Offset]] = {}
        self.drained: set[Value] = set()
        self.drain_began_ns: int | None = None
        self._places: dict[Offset, int] = {}

    def holds(self, offset: Offset, value: Value, operation: Operation) -> None:
        here = self.values.get(offset)
        if here is None:
            self.values[offset] = {value: operation}
        elif value in here:
            return
        else:
            here[value] = operation
        self.offsets.setdefault(value, []).append(offset)

    def number(self) -> None:
        """Give every offset its place; nothing is added after that."""
        self._places = {offset: place for place, offset in enumerate(sorted(self.values))}

    def place(self, offset: Offset) -> int:
        return self._places[offset]

    def first_place(self, value: Value) -> int | None:
        offsets = self.offsets.get(value)
        return self._places[min(offsets)] if offsets else None

    def last_place(self, value: Value) -> int | None:
        offsets = self.offsets.get(value)
        return self._places[max(offsets)] if offsets else None
