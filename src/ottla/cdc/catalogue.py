"""Queries of the database's catalogue: tables and keys, types, publications and slots."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.cdc.errors import NotPossible
from ottla.cdc.json_text import Types
from ottla.cdc.pgoutput import UNCHANGED, Row
from ottla.cdc.position import lsn_number
from ottla.cdc.postgres import Connection, raw_cursor, translated_errors
from ottla.cdc.table import Field, Table, TableName, identifier

VERSION_MIN = 130000
FILTERS_SINCE, GENERATED_SINCE = 150000, 180000
NOTHING = "n"  # Replica identity NOTHING: changes cannot be identified.

_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relreplident,
  ARRAY(SELECT a.attname::text FROM pg_index i JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary),
  ARRAY(SELECT a.attname::text FROM pg_index i JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = c.oid AND i.indisreplident)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname, c.relname
"""
_FIELDS = """
SELECT attname, atttypid, attgenerated <> '' FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A table of the database."""

    oid: int
    name: TableName
    identity: str
    key: tuple[str, ...]  # Empty if it has none.


class Published(NamedTuple):
    columns: tuple[str, ...] | None  # None: unknown.
    row_filter: str | None


class Slot(NamedTuple):
    plugin: str
    database: str
    confirmed_lsn: int
    is_lost: bool


def publishing(publication: str, tables: Sequence[TableName], *, is_new: bool) -> str:
    """The statement that creates a publication, or adds tables to it."""
    names = ", ".join(table.quoted for table in tables)
    if not is_new:
        return f"ALTER PUBLICATION {identifier(publication)} ADD TABLE {names}"
    return (
        f"CREATE PUBLICATION {identifier(publication)} FOR TABLE {names}"
        " WITH (publish_via_partition_root = true)"
    )


class Catalogue:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def check(self) -> None:
        """Refuse a server that cannot decode its log."""
        version = self._connection.server_version
        if version < VERSION_MIN:
            raise NotPossible(f"PostgreSQL 13 or newer is needed, this is {version // 10000}")
        level = self._one("SHOW wal_level")
        if level != "logical":
            raise NotPossible(
                f"the server's wal_level is {level!r}, and changes cannot be decoded from that: "
                "ALTER SYSTEM SET wal_level = logical, then restart PostgreSQL"
            )

    @property
    def database(self) -> str:
        return str(self._one("SELECT current_database()"))

    def wal_lsn(self) -> int:
        return lsn_number(self._one("SELECT pg_current_wal_lsn()"))

    def tables(self) -> dict[TableName, Found]:
        found = {}
        for oid, schema, name, identity, primary, index in self.all(_TABLES):
            table = TableName(schema, name)
            key = tuple({"i": index, NOTHING: []}.get(identity, primary))
            found[table] = Found(oid, table, identity, key)
        return found

    def fields(self, oid: int, published: Published) -> list[Field]:
        """The published columns; generated ones cannot be published before PostgreSQL 18."""
        can_be_generated = self._connection.server_version >= GENERATED_SINCE
        return [
            Field(name, type_id)
            for name, type_id, is_generated in self.all(_FIELDS, (oid,))
            if (published.columns is None or name in published.columns)
            and (can_be_generated or not is_generated)
        ]

    def learn_types(self, types: Types) -> None:
        bases = self.all("SELECT oid, typbasetype FROM pg_type WHERE typtype = 'd'")
        elements = self.all(
            "SELECT oid, typelem FROM pg_type WHERE typcategory = 'A' AND typelem <> 0"
            " AND typdelim = ',' AND typlen = -1 AND typtype = 'b'"
        )
        types.learn(dict(bases), dict(elements))

    def published(self, publication: str) -> dict[TableName, Published] | None:
        """The publication's tables; None if there is no such publication."""
        if self._one("SELECT 1 FROM pg_publication WHERE pubname = %s", (publication,)) is None:
            return None
        has_filters = self._connection.server_version >= FILTERS_SINCE
        more = "attnames::text[], rowfilter" if has_filters else "NULL, NULL"
        rows = self.all(
            f"SELECT schemaname, tablename, {more}"  # noqa: S608  Nothing from outside is in it.
            " FROM pg_publication_tables WHERE pubname = %s",
            (publication,),
        )
        return {
            TableName(schema, name): Published(tuple(columns) if columns else None, row_filter)
            for schema, name, columns, row_filter in rows
        }

    def slot(self, name: str) -> Slot | None:
        rows = self.all(
            "SELECT plugin, database, confirmed_flush_lsn, wal_status"
            " FROM pg_replication_slots WHERE slot_name = %s",
            (name,),
        )
        if not rows:
            return None
        plugin, database, confirmed, status = rows[0]
        return Slot(plugin or "", database or "", lsn_number(confirmed or "0/0"), status == "lost")

    def drop_slot(self, name: str) -> None:
        self.run("SELECT pg_drop_replication_slot(%s)", (name,))

    def keep_slot(self, temporary: str, name: str) -> None:
        """Copy a temporary slot to a permanent one."""
        self.run("SELECT pg_copy_logical_replication_slot(%s, %s, false)", (temporary, name))

    def filled(self, table: Table, row: Row) -> Row:
        """The row, with missing large values read from the table; None if the row is gone."""
        missing = [
            field for field, value in zip(table.fields, row, strict=True) if value is UNCHANGED
        ]
        wanted = ", ".join(identifier(field.name) for field in missing)
        condition = " AND ".join(f"{identifier(field.name)} = %s" for field in table.key_fields)
        query = f"SELECT {wanted} FROM {table.name.quoted} WHERE {condition}"  # noqa: S608
        with (
            translated_errors(),
            raw_cursor(self._connection, [field.type_id for field in missing]) as cursor,
        ):
            cursor.execute(query, table.key_texts(row))
            found = iter(cursor.fetchone() or [None] * len(missing))
        return [next(found) if value is UNCHANGED else value for value in row]

    def _one(self, query: str, arguments: Sequence[object] = ()) -> Any:  # noqa: ANN401
        rows = self.all(query, arguments)
        return rows[0][0] if rows else None

    def all(self, query: str, arguments: Sequence[object] = ()) -> list[Any]:
        """All rows that a query of the catalogue returns."""
        with translated_errors(), self._connection.cursor() as cursor:
            cursor.execute(query, arguments)
            return list(cursor.fetchall())

    def run(self, statement: str, arguments: Sequence[object] = ()) -> None:
        with translated_errors(), self._connection.cursor() as cursor:
            cursor.execute(statement, arguments)
