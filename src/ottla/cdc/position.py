"""Where in the history of a database a record belongs, and the headers that say so.

    op     r: read by the snapshot, c: created, u: updated, d: deleted, t: truncated
    lsn    of the commit, as a number; of the snapshot, for what it read
    index  the number of the change within the commit, from 1 on; 0 for what the snapshot read
    xid    the transaction, if it was one
    ts     when it was committed (or read), in milliseconds since 1970

Within a partition (lsn, index) only grows. So the last record of a partition tells all that is
written there: what is not newer must not be written again.
"""

from typing import NamedTuple

from ottla.cdc.errors import NotPossible
from ottla.records.record import Headers

SNAPSHOT_INDEX = 0


class Position(NamedTuple):
    lsn: int
    change: int  # Number within the commit.

    @property
    def is_snapshot(self) -> bool:
        return self.change == SNAPSHOT_INDEX


NOWHERE = Position(-1, -1)  # Before every position.


def headers_of(op: str, position: Position, xid: int | None, ts_ms: int) -> Headers:
    lsn, index = position
    return (
        ("op", op.encode()),
        ("lsn", b"%d" % lsn),
        ("index", b"%d" % index),
        ("xid", None if xid is None else b"%d" % xid),
        ("ts", b"%d" % ts_ms),
    )


def position_in(headers: Headers, where: str) -> Position:
    """The position in a record's headers; `where` describes the record in the error message."""
    found = dict(headers)
    try:
        return Position(int(found["lsn"] or b""), int(found["index"] or b""))
    except (KeyError, ValueError):
        raise NotPossible(
            f"{where} was not written by a tail of a database: it has no headers lsn and index; "
            "choose another --prefix, or remove the topic"
        ) from None


def lsn_text(lsn: int) -> str:
    """In PostgreSQL's text form."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: str) -> int:
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
