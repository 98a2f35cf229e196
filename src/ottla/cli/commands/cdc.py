"""`ottla cdc`: committed changes of a database as records."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.commands.produce import Compression
from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask, fail
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

app = Tool(
    "cdc",
    help="""Changes of a database, as records: each committed change once, in order.

    \b
    Examples:
      ottla cdc postgres postgresql://localhost/shop
    """,
    contacts_cluster=True,
)


@app.command()
def postgres(
    dsn: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE",
            help="As psql takes it: postgresql://user@host/name, or 'host=... dbname=...'.",
        ),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="schema.table; default: all with a key."),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="PREFIX",
            help="Topics are PREFIX.schema.table; default: the database's name.",
        ),
    ] = None,
    slot: Annotated[
        str, typer.Option("--slot", metavar="NAME", help="The replication slot; one for each tail.")
    ] = "ottla",
    publication: Annotated[
        str,
        typer.Option(
            "--publication", metavar="NAME", help="The publication; made if it is not there."
        ),
    ] = "ottla",
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", metavar="N", min=1, help="Of topics that are made."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", metavar="N", min=1, help="Of topics that are made."
        ),
    ] = None,
    compression: Annotated[
        Compression,
        typer.Option(
            "--compression", "-z", metavar="none|gzip|snappy|lz4|zstd", help="Of the batches."
        ),
    ] = Compression.NONE,
    resync: Annotated[
        bool,
        typer.Option(
            "--resync", help="Make a new slot and write what differs from the topics, first."
        ),
    ] = False,
    to_end: Annotated[
        bool, typer.Option("--to-end", "-e", help="Stop where the database is now.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write what is in the tables of a PostgreSQL database, then every change, to topics.

    A topic for each table: the key is the primary key, the value is the row as JSON, a deleted
    row is a tombstone; the headers op, lsn, index, xid and ts say what it was and when. Ctrl-C
    stops; the next start goes on, with nothing lost and nothing twice. The server needs
    wal_level = logical, the user the right to replicate.

    \b
    Examples:
      ottla cdc postgres postgresql://localhost/shop
      ottla cdc postgres postgresql://ottla@db/shop public.orders public.customers --prefix shop
      ottla cdc postgres 'host=db dbname=shop' orders --slot reports --publication reports
      ottla cdc postgres postgresql://localhost/shop --resync --to-end
    """
    from ottla.cdc.errors import CdcError
    from ottla.cdc.settings import TailSettings
    from ottla.cli.tasks.tail import tail

    settings = TailSettings(
        dsn=dsn,
        tables=tuple(tables or ()),
        prefix=prefix,
        slot=slot,
        publication=publication,
        partitions=partitions,
        replication_factor=replication_factor,
        codec=list(Compression).index(compression),
        is_resync=resync,
        stops_at_end=to_end,
    )

    async def work(cluster: "Cluster") -> None:
        await tail(cluster, settings, as_json=as_json)

    try:
        ask(work, bootstrap)
    except CdcError as failure:
        fail(str(failure))
