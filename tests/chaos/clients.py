"""What the clients of a run have in common: where they write and read, and how long each lives.

A client is a series of lives: one that has heard of an error is thrown away, and so is each after
a while; every life is a process of its own to the checker.
"""

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Event

from ottla.simulation.history.operations import Key, Value
from tests.chaos.recorder import Recorder

LIFE_SECONDS = (20.0, 60.0)
UNANSWERED_MAX = 100  # Of one producer; it waits while there are more.
RETURN_RECORDS_MAX = 300  # So far back a new reader begins, at most.
COMMIT_SECONDS = 1.0
COMMITTED_SECONDS = 5.0  # Between two looks at what is committed.
TIMEOUT_MS = 5_000  # Of a single request: a broker that is silent is given up.
DELIVERY_MS = 30_000
RECORDS_MAX = 200
PADDING_MAX = 400


@dataclass(slots=True)
class Setting:
    """What every client of a run is given."""

    bootstrap: str
    topic: str
    partitions: int
    recorder: Recorder
    sends_per_second: float
    flush_seconds: float = DELIVERY_MS / 1000  # How long a producer waits for its last answers.
    writing: Event = field(default_factory=Event)  # Set when producers are to end,
    reading: Event = field(default_factory=Event)  # and when all others are.

    @property
    def keys(self) -> list[Key]:
        return [self.key(partition) for partition in range(self.partitions)]

    def key(self, partition: int) -> Key:
        return f"{self.topic}-{partition}"


class Lives:
    """The names and ends of one client's lives, the same for every run of a seed."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.chance = random.Random(f"{seed} {name}")
        self.process = ""
        self._number = 0
        self._count = 0
        self._ends = 0.0

    def begin(self) -> str:
        self._number += 1
        self._count = 0
        self.process = f"{self.name}.{self._number}"
        self._ends = time.monotonic() + self.chance.uniform(*LIFE_SECONDS)
        return self.process

    def is_over(self) -> bool:
        return time.monotonic() > self._ends

    def next_value(self) -> Value:
        """Never the same again: a life's name and a number."""
        self._count += 1
        return f"{self.process}-{self._count}"

    def padded(self, value: Value) -> bytes:
        return f"{value} {'.' * self.chance.randrange(PADDING_MAX)}".encode()


def value_of(payload: bytes) -> Value:
    return payload.partition(b" ")[0].decode()


def starts(
    positions: dict[int, int], partitions: Iterable[int], chance: random.Random
) -> dict[int, int]:
    """Where a new reader begins: some way before the last one's end."""
    return {
        partition: max(0, positions.get(partition, 0) - chance.randrange(RETURN_RECORDS_MAX))
        for partition in partitions
    }
