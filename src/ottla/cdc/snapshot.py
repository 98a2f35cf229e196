"""All rows of some tables at one point in time: the start of a new slot.

The slot is temporary: it ends with its connection. Only when every row is written it is copied to a
permanent one (`Snapshot.keep`). So an existing slot proves that its snapshot is complete, and an
interrupted snapshot leaves no slot that would retain the server's log. The temporary slot's name is
derived from the permanent one: while it exists, no other tail takes a snapshot for the same slot.
"""

from collections.abc import Generator
from zlib import crc32

from ottla.cdc.catalogue import Catalogue, Published
from ottla.cdc.pgoutput import Row
from ottla.cdc.position import lsn_number
from ottla.cdc.postgres import connect, raw_cursor, translated_errors
from ottla.cdc.table import Table, TableName, identifier

ROWS_AT_A_TIME = 2000


class Snapshot:
    """Blocking; makes one call at a time on its two connections."""

    def __init__(self, dsn: str, slot: str) -> None:
        """InUse if another tail takes a snapshot for `slot`."""
        self._temporary = f"{slot[:45]}_{crc32(slot.encode()):08x}_snapshot"  # 63 at most.
        self._replication = connect(dsn, replication=True)
        self._sql = None
        try:
            with translated_errors(), self._replication.cursor() as cursor:
                cursor.execute(
                    f"CREATE_REPLICATION_SLOT {identifier(self._temporary)}"
                    " TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
                )
                _, lsn, name, _ = cursor.fetchone()
            self.lsn = lsn_number(lsn)
            self._sql = connect(dsn)
            self._sql.autocommit = False
            with translated_errors(), self._sql.cursor() as cursor:
                cursor.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute("SET TRANSACTION SNAPSHOT %s", (name,))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for connection in (self._sql, self._replication):
            if connection is not None:
                connection.close()

    def lock(self, tables: list[TableName]) -> None:
        """Lock the schema of these tables until they are read."""
        assert self._sql is not None, "it is open"
        names = ", ".join(table.quoted for table in tables)
        with translated_errors(), self._sql.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")

    def rows(self, table: Table, published: Published) -> Generator[list[Row], None, None]:
        """The table's rows, in chunks."""
        columns = ", ".join(identifier(field.name) for field in table.fields)
        query = f"SELECT {columns} FROM {table.name.quoted}"  # noqa: S608  Quoted above.
        if published.row_filter is not None:
            query += f" WHERE {published.row_filter}"
        with translated_errors():
            types = [field.type_id for field in table.fields]
            with raw_cursor(self._sql, types, "ottla_snapshot") as cursor:
                cursor.execute(query)
                while rows := cursor.fetchmany(ROWS_AT_A_TIME):
                    yield rows

    def keep(self, catalogue: Catalogue, slot: str) -> None:
        catalogue.keep_slot(self._temporary, slot)
