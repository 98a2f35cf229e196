"""Who owned which partition when, from the notes of a group's members and of who ended them.

A member owns a partition from the moment it is told so. It owns it until it says that it gives it
back, or until it is killed, or stopped for so long that the group gave it up. A member that finds
out that it was given up long ago owned it at least when its last commit was taken.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple


class Note(NamedTuple):
    word: str
    time: float
    pid: int
    partition: int
    offset: int


class Owned(NamedTuple):
    start: float
    end: float
    pid: int
    how: str


@dataclass(slots=True)
class Endings:
    """What was done to members, by process."""

    killed: dict[int, float] = field(default_factory=dict)
    stopped: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))


def read_notes(path: Path) -> list[Note]:
    """In the order in which they were written; a line that a kill cut short is left out."""
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines()]
    return [
        Note(word, float(at), int(pid), int(partition), int(offset))
        for word, at, pid, partition, offset in (line for line in lines if len(line) == 5)
    ]


def owned(notes: Iterable[Note], endings: Endings, now: float) -> dict[int, list[Owned]]:
    """By partition, every time that it was owned, in order."""
    begun: dict[tuple[int, int], float] = {}
    trusted: dict[tuple[int, int], float] = {}
    found: dict[int, list[Owned]] = defaultdict(list)

    def end(who: tuple[int, int], at: float, how: str) -> None:
        start = begun.pop(who)
        pauses = [pause for pause in endings.stopped.get(who[0], []) if start <= pause <= at]
        found[who[1]].append(Owned(start, min([at, *pauses]), who[0], how))

    for note in notes:
        who = (note.pid, note.partition)
        if note.word == "assigned":
            begun[who] = trusted[who] = note.time
        elif note.word == "committed" and who in begun:
            trusted[who] = max(trusted[who], note.time)
        elif note.word in ("revoked", "lost") and who in begun:
            end(who, note.time if note.word == "revoked" else trusted[who], note.word)
    for who in list(begun):
        end(who, endings.killed.get(who[0], now), "killed" if who[0] in endings.killed else "has")
    return {partition: sorted(intervals) for partition, intervals in found.items()}


def overlaps(intervals: dict[int, list[Owned]]) -> list[tuple[int, Owned, Owned]]:
    """Where two owned a partition at the same time."""
    return [
        (partition, one, other)
        for partition, in_order in intervals.items()
        for one, other in pairwise(in_order)
        if other.start < one.end and one.pid != other.pid
    ]
