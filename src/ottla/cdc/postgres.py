"""Connections to PostgreSQL, with readable errors.

Values are the text of PostgreSQL's output functions, with settings independent of server and user:
so a row looks the same in a snapshot and in the stream.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.cdc.errors import CdcError, Interrupted, InUse, NotPossible

# A cursor or connection of psycopg2, which is untyped.
Connection = Any
Cursor = Any

OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        *("datestyle=ISO", "timezone=UTC", "intervalstyle=postgres", "bytea_output=hex"),
        *("extra_float_digits=1", "statement_timeout=0", "lock_timeout=0"),
        "idle_in_transaction_session_timeout=0",
    )
)
CONNECT_SECONDS_MAX = 10
IN_USE, EXISTS = "55006", "42710"
LIMIT_REACHED, WRONG_STATE = "53400", "55000"
# Until PostgreSQL 15, and since: at the start of a replication connection, and of a slot's copy.
MAY_NOT_REPLICATE = ("replication role", "to start WAL sender", "to use replication slots")
GOING_AWAY = ("08", "57P")  # Error classes that end a connection.


def connect(dsn: str, *, replication: bool = False) -> Connection:
    """Connect for SQL or for the replication protocol; raises CdcError."""
    psycopg2 = import_psycopg2()
    arguments: dict[str, Any] = {}
    if replication:
        arguments["connection_factory"] = psycopg2.extras.LogicalReplicationConnection
    with translated_errors():
        given = psycopg2.extensions.parse_dsn(dsn).get("options", "")
        connection = psycopg2.connect(
            dsn,
            options=f"{given} {OPTIONS}".strip(),
            application_name="ottla cdc",
            client_encoding="UTF8",
            connect_timeout=CONNECT_SECONDS_MAX,
            **arguments,
        )
    if not replication:
        connection.autocommit = True
    return connection


def import_psycopg2() -> Any:  # noqa: ANN401  It has no types.
    try:
        import psycopg2
        import psycopg2.errors
        import psycopg2.extras
    except ImportError:
        raise NotPossible(
            "to read PostgreSQL, psycopg2 is needed: pip install 'ottla[cdc]'"
        ) from None
    return psycopg2


def raw_cursor(connection: Connection, type_ids: Iterable[int], name: str | None = None) -> Cursor:
    """A cursor that returns text for all types; a named one reads in pieces."""
    psycopg2 = import_psycopg2()
    cursor = connection.cursor(name)
    raw = psycopg2.extensions.new_type(tuple(set(type_ids)), "RAW", lambda value, _: value)
    psycopg2.extensions.register_type(raw, cursor)
    return cursor


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate psycopg2's errors to ours."""
    psycopg2 = import_psycopg2()
    try:
        yield
    except psycopg2.Error as failure:
        raise sentence(failure) from failure


def sentence(failure: Any) -> CdcError:  # noqa: ANN401  An error of psycopg2.
    psycopg2 = import_psycopg2()
    code = failure.pgcode or ""
    primary = failure.diag.message_primary or " ".join(str(failure).split())
    text = f"PostgreSQL: {primary.removeprefix('FATAL: ').strip()}"
    if failure.diag.message_hint:
        text += f" ({failure.diag.message_hint})"
    if any(words in text for words in MAY_NOT_REPLICATE):
        return NotPossible(
            f"{text}; ALTER ROLE ... REPLICATION gives a role the right to replicate"
        )
    if code == LIMIT_REACHED:
        return NotPossible(f"{text}; 'ottla cdc' needs two while it reads a snapshot")
    if code in (IN_USE, EXISTS):
        return InUse(text)
    if code.startswith(GOING_AWAY) or (
        not code and isinstance(failure, psycopg2.OperationalError | psycopg2.InterfaceError)
    ):
        return Interrupted(text)
    if not code and isinstance(failure, psycopg2.DatabaseError):
        return Interrupted(text)  # The stream ended unexpectedly.
    return NotPossible(text)
