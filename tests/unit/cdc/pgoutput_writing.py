"""Writes pgoutput's messages, as PostgreSQL's documentation describes them."""

from struct import pack

from ottla.cdc.pgoutput import (
    EPOCH_MICROS,
    UNCHANGED,
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


def written(message: Message, *, old_is_key: bool = True) -> bytes:
    old = b"K" if old_is_key else b"O"
    match message:
        case Begin(lsn, micros, xid):
            return pack(">cQqI", b"B", lsn, micros - EPOCH_MICROS, xid)
        case Commit(commit_lsn, end_lsn):
            return pack(">cBQQq", b"C", 0, commit_lsn, end_lsn, 0)
        case Relation(relation_id, schema, name, identity, columns):
            head = pack(">cI", b"R", relation_id) + _text(schema) + _text(name)
            head += identity.encode() + pack(">H", len(columns))
            return head + b"".join(
                pack(">B", column.is_key) + _text(column.name) + pack(">Ii", column.type_id, -1)
                for column in columns
            )
        case Insert(relation_id, new):
            return pack(">cIc", b"I", relation_id, b"N") + _row(new)
        case Update(relation_id, before, new):
            given = b"" if before is None else old + _row(before)
            return pack(">cI", b"U", relation_id) + given + b"N" + _row(new)
        case Delete(relation_id, before):
            return pack(">cI", b"D", relation_id) + old + _row(before)
        case Truncate(relation_ids):
            return pack(f">cIB{len(relation_ids)}I", b"T", len(relation_ids), 0, *relation_ids)
        case _:
            return message.kind.encode() + b"whatever"


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def _row(row: Row) -> bytes:
    parts = [pack(">H", len(row))]
    for value in row:
        if value is None:
            parts.append(b"n")
        elif value is UNCHANGED:
            parts.append(b"u")
        else:
            data = value.encode()
            parts.append(b"t" + pack(">I", len(data)) + data)
    return b"".join(parts)
