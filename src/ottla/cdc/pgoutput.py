"""The messages of pgoutput, PostgreSQL's logical decoding plugin (protocol version 1).

Pure: bytes in, named tuples out. Values stay text, as PostgreSQL's output functions write them; the
type ids of the preceding `Relation` give their meaning.
"""

from collections.abc import Callable
from enum import Enum
from struct import Struct, error
from typing import Final, Literal, NamedTuple

from ottla.cdc.errors import BadMessage

EPOCH_MICROS: Final = 946_684_800_000_000  # PostgreSQL counts from 2000-01-01.
KEY_FLAG: Final = 1

_UINT16, _UINT32 = Struct(">H"), Struct(">I")
_BEGIN, _COMMIT, _TRUNCATE = Struct(">QqI"), Struct(">xQQq"), Struct(">IB")


class _Unchanged(Enum):
    UNCHANGED = "unchanged"


# A large (TOAST) value that an update did not change and the log does not repeat.
UNCHANGED: Final = _Unchanged.UNCHANGED
Value = str | None | Literal[_Unchanged.UNCHANGED]
Row = list[Value]


class Begin(NamedTuple):
    commit_lsn: int
    commit_micros: int  # Since 1970.
    xid: int


class Commit(NamedTuple):
    commit_lsn: int
    end_lsn: int


class Column(NamedTuple):
    name: str
    type_id: int
    is_key: bool  # Part of the replica identity; every column with FULL.


class Relation(NamedTuple):
    relation_id: int
    schema: str
    name: str
    identity: str  # d: the primary key, i: an index, f: the full row, n: nothing.
    columns: tuple[Column, ...]


class Insert(NamedTuple):
    relation_id: int
    new: Row


class Update(NamedTuple):
    relation_id: int
    old: Row | None  # Present if the key changed, or if the identity is the full row.
    new: Row


class Delete(NamedTuple):
    relation_id: int
    old: Row


class Truncate(NamedTuple):
    relation_ids: tuple[int, ...]


class Other(NamedTuple):
    """A type, an origin, or an application message: irrelevant for rows."""

    kind: str


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other


def parse(payload: bytes) -> Message:
    """Parse one message; BadMessage if it is malformed."""
    try:
        return _PARSERS.get(payload[:1], _other)(payload)
    except (IndexError, ValueError, error) as failure:
        raise BadMessage(f"PostgreSQL sent a message that makes no sense: {failure}") from failure


def _begin(data: bytes) -> Begin:
    lsn, micros, xid = _BEGIN.unpack_from(data, 1)
    return Begin(lsn, micros + EPOCH_MICROS, xid)


def _commit(data: bytes) -> Commit:
    commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
    return Commit(commit_lsn, end_lsn)


def _relation(data: bytes) -> Relation:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    schema, position = _text(data, 5)
    name, position = _text(data, position)
    identity = chr(data[position])
    (count,) = _UINT16.unpack_from(data, position + 1)
    position += 3
    columns = []
    for _ in range(count):
        flags = data[position]
        column, position = _text(data, position + 1)
        (type_id,) = _UINT32.unpack_from(data, position)
        position += 8  # Type id and modifier.
        columns.append(Column(column, type_id, bool(flags & KEY_FLAG)))
    _check_end(data, position)
    # An empty schema means pg_catalog.
    return Relation(relation_id, schema or "pg_catalog", name, identity, tuple(columns))


def _insert(data: bytes) -> Insert:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    if data[5] != 0x4E:  # N
        raise ValueError("an insert without a new row")
    new, position = _row(data, 6)
    _check_end(data, position)
    return Insert(relation_id, new)


def _update(data: bytes) -> Update:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    old: Row | None = None
    position = 5
    if data[position] in b"KO":
        old, position = _row(data, 6)
    if data[position] != 0x4E:  # N
        raise ValueError("an update without a new row")
    new, position = _row(data, position + 1)
    _check_end(data, position)
    return Update(relation_id, old, new)


def _delete(data: bytes) -> Delete:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    if data[5] not in b"KO":
        raise ValueError("a delete that does not say of what")
    old, position = _row(data, 6)
    _check_end(data, position)
    return Delete(relation_id, old)


def _truncate(data: bytes) -> Truncate:
    count, _ = _TRUNCATE.unpack_from(data, 1)
    _check_end(data, 6 + 4 * count)
    return Truncate(tuple(_UINT32.unpack_from(data, 6 + 4 * i)[0] for i in range(count)))


def _other(data: bytes) -> Other:
    if data[:1] not in {b"O", b"Y", b"M"}:
        raise ValueError(f"its kind is {data[:1]!r}")
    return Other(chr(data[0]))


def _text(data: bytes, position: int) -> tuple[str, int]:
    end = data.index(0, position)
    return data[position:end].decode(), end + 1


def _row(data: bytes, position: int) -> tuple[Row, int]:
    count = data[position] << 8 | data[position + 1]
    position += 2
    row: Row = []
    for _ in range(count):
        kind = data[position]
        position += 1
        if kind == 0x74:  # t, text
            start = position + 4
            position = start + int.from_bytes(data[position:start])
            if position > len(data):
                raise ValueError("a value goes past the end")
            row.append(data[start:position].decode())
        elif kind == 0x6E:  # n, null
            row.append(None)
        elif kind == 0x75:  # u, unchanged
            row.append(UNCHANGED)
        else:
            raise ValueError(f"a value of kind {kind}")
    return row, position


def _check_end(data: bytes, position: int) -> None:
    if position != len(data):
        raise ValueError(f"it has {len(data)} bytes, and should have {position}")


_PARSERS: Final[dict[bytes, Callable[[bytes], Message]]] = {
    b"B": _begin,
    b"C": _commit,
    b"R": _relation,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
}
