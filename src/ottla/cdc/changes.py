"""Converts stream messages to row changes, each with its position. Pure.

Positions depend only on the stream: an update always takes two of them, since it may become two
records (if the key changed: a tombstone for the old key, the row under the new one). So the same
commit gets the same positions however often it is sent, and whichever tables are tailed.
"""

from typing import NamedTuple

from ottla.cdc.errors import BadMessage
from ottla.cdc.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Row,
    Truncate,
    Update,
)
from ottla.cdc.position import Position

MICROS_PER_MS = 1000


class Change(NamedTuple):
    op: str
    relation_id: int
    old: Row | None
    new: Row | None
    position: Position
    xid: int
    ts_ms: int


class Committed(NamedTuple):
    """All changes of a transaction have been received."""

    end_lsn: int


Event = Change | Committed | Relation


class Changes:
    def __init__(self) -> None:
        self._begin: Begin | None = None
        self._index = 0

    @property
    def is_inside(self) -> bool:
        """Whether a transaction is open."""
        return self._begin is not None

    def take(self, message: Message) -> list[Event]:
        match message:
            case Insert(relation_id, new):
                return [self._change("c", relation_id, None, new)]
            case Update(relation_id, old, new):
                return [self._change("u", relation_id, old, new, takes=2)]
            case Delete(relation_id, old):
                return [self._change("d", relation_id, old, None)]
            case Truncate(relation_ids):
                return [self._change("t", item, None, None) for item in relation_ids]
            case Begin():
                self._begin, self._index = message, 0
                return []
            case Commit(_, end_lsn):
                self._begin = None
                return [Committed(end_lsn)]
            case Relation():
                return [message]
            case _:
                return []

    def _change(
        self, op: str, relation_id: int, old: Row | None, new: Row | None, takes: int = 1
    ) -> Change:
        begin = self._begin
        if begin is None:
            raise BadMessage("PostgreSQL sent a change outside of a transaction")
        position = Position(begin.commit_lsn, self._index + 1)
        self._index += takes
        ts_ms = begin.commit_micros // MICROS_PER_MS
        return Change(op, relation_id, old, new, position, begin.xid, ts_ms)
