"""`ottla log`: print the files of a data directory."""

from typing import Annotated

import typer

from ottla.cli.tasks.client_options import AsJson, failures_told
from ottla.cli.tool import Tool

app = Tool(
    "log",
    help="""The files of a data directory, as a person reads them.

    \b
    Examples:
      ottla log dump data/orders-0/00000000000000000000.log
    """,
)


@app.callback()
def log() -> None:
    """The files of a data directory, as a person reads them."""


@app.command()
def dump(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="What to show.")],
    headers_only: Annotated[
        bool, typer.Option("--batches", help="The headers of batches, without their records.")
    ] = False,
    offset: Annotated[
        int,
        typer.Option(
            "--offset", "-o", metavar="N", min=0, help="Begin with the batch that holds it."
        ),
    ] = 0,
    batches_max: Annotated[
        int | None,
        typer.Option("--max-batches", "-n", metavar="N", min=1, help="Stop after so many."),
    ] = None,
    is_metadata: Annotated[
        bool | None,
        typer.Option(
            "--metadata/--data",
            help="Whether the records are the cluster's metadata. Default: by the file's place.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a segment, an index or a snapshot; read-only, and no broker is needed.

    Knows .log, .index, .timeindex, .txnindex and .snapshot files, checkpoints, and the log and
    the snapshots (.checkpoint) of the cluster's metadata with their records decoded. The exit
    status is 1 if something in the file is damaged.

    \b
    Examples:
      ottla log dump data/orders-0/00000000000000000000.log
      ottla log dump data/orders-0/00000000000000000000.log --batches --offset 5000 -n 10
      ottla log dump data/__cluster_metadata-0/*.log
      ottla log dump data/orders-0/*.index data/orders-0/*.timeindex
    """
    from ottla.cli.views.file_view import show_file
    from ottla.cli.views.segment_view import Wanted

    wanted = Wanted(
        has_records=not headers_only,
        offset=offset,
        batches_max=batches_max,
        is_metadata=is_metadata,
    )
    with failures_told():
        damages = sum(show_file(name, wanted, as_json=as_json) for name in files)
        if damages:
            raise typer.Exit(1)
