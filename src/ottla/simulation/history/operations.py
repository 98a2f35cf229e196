"""What the clients of a cluster did, one operation after another, kept as lines of JSON.

An operation has steps, as a transaction has: sends, polls, and what concerns a group. Its outcome
is `fail` only if it was surely not done; whoever heard nothing, or that time was over, says `info`.
After an `info` the client is thrown away: the next operation is another process's. Every value is
sent at most once to its key, ever, so that a record that is read says which operation wrote it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ottla.model.types import Offset

Key = str  # A partition, as `orders-0`.
Value = str
Found = Sequence[tuple[Offset, Value]]

NO_OFFSET: Final = -1  # What a group is told that has committed nothing.


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Kind(StrEnum):
    SEND = "send"
    POLL = "poll"
    TXN = "txn"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    GROUP = "group"
    CRASH = "crash"
    DRAIN = "drain"  # Polls of all that there is, from the start, after everything else.


@dataclass(frozen=True, slots=True)
class Send:
    """One record; its offset only if the broker said it."""

    key: Key
    value: Value
    offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    found: Mapping[Key, Found]


@dataclass(frozen=True, slots=True)
class Assign:
    """From now on the process reads these keys, and those that it read before where it was."""

    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Commit:
    group: str
    key: Key
    offset: Offset


@dataclass(frozen=True, slots=True)
class Committed:
    """A group's offset as it was fetched, or NO_OFFSET."""

    group: str
    key: Key
    offset: Offset


@dataclass(frozen=True, slots=True)
class Owned:
    """The process was given these keys as a member of a generation."""

    group: str
    generation: int
    keys: Sequence[Key]


Step = Send | Poll | Assign | Commit | Committed | Owned
_STEPS: Final = {kind.__name__.lower(): kind for kind in (Send, Assign, Commit, Committed, Owned)}


@dataclass(frozen=True, slots=True)
class Operation:
    """`index` is its place among all operations by the moment that each began."""

    index: int
    process: str
    outcome: Outcome
    kind: Kind
    began_ns: int
    ended_ns: int
    steps: Sequence[Step] = ()
    rebalanced: Sequence[Key] = ()  # Given or taken while it was under way.


def to_lines(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        yield json.dumps(
            {
                "index": operation.index,
                "process": operation.process,
                "outcome": operation.outcome,
                "kind": operation.kind,
                "began_ns": operation.began_ns,
                "ended_ns": operation.ended_ns,
                "steps": [_plain(step) for step in operation.steps],
                "rebalanced": list(operation.rebalanced),
            },
            separators=(",", ":"),
        )


def from_lines(lines: Iterable[str]) -> Iterator[Operation]:
    for line in lines:
        fields = json.loads(line)
        yield Operation(
            index=fields["index"],
            process=fields["process"],
            outcome=Outcome(fields["outcome"]),
            kind=Kind(fields["kind"]),
            began_ns=fields["began_ns"],
            ended_ns=fields["ended_ns"],
            steps=tuple(_step(step) for step in fields["steps"]),
            rebalanced=tuple(fields["rebalanced"]),
        )


def _plain(step: Step) -> list[object]:
    match step:
        case Poll(found):
            return ["poll", {key: list(records) for key, records in found.items()}]
        case Send(key, value, offset):
            return ["send", key, value, offset]
        case Assign(keys):
            return ["assign", list(keys)]
        case Owned(group, generation, keys):
            return ["owned", group, generation, list(keys)]
        case Commit(group, key, offset) | Committed(group, key, offset):
            return [type(step).__name__.lower(), group, key, offset]


def _step(fields: list[Any]) -> Step:
    name, *arguments = fields
    if name == "poll":
        (found,) = arguments
        return Poll({key: [(offset, value) for offset, value in found[key]] for key in found})
    step: Step = _STEPS[name](*arguments)
    return step
