"""`ottla pipeline`: check a declared pipeline, and run it on Spark."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.tool import Tool

app = Tool(
    "pipeline",
    help="""Check and run declared pipelines on Spark.

    \b
    Examples:
      ottla pipeline check orders.yaml
      ottla pipeline run orders.yaml
    """,
)

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The pipeline: a file in YAML or Python.")
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The Spark to run on, like spark://host:7077. Default: local[*].",
    ),
]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        help="Brokers to use instead of those in the file.",
    ),
]


@app.command()
def run(
    file: File,
    master: Master = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take what the topics hold now, then end.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Progress on standard output, an object per line.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="The whole report of a query that fails.")
    ] = False,
) -> None:
    """Check a pipeline, then run it until Ctrl-C or SIGTERM.

    Everything is checked before the first row is read; all mistakes are told, each with its line.
    While it runs, each query shows its rows, its lag and how long its micro-batches take. It is
    stopped between two micro-batches, and goes on from there the next time.

    \b
    Examples:
      ottla pipeline run orders.yaml
      ottla pipeline run orders.yaml --once
      ottla pipeline run orders.yaml --json | jq .lag
      ottla pipeline run orders.py --master spark://spark-1:7077
    """
    from ottla.cli.tasks.pipeline import Wanted, run_pipeline

    raise typer.Exit(run_pipeline(Wanted(file, master, bootstrap, once, as_json, trace)))


@app.command()
def check(
    file: File,
    master: Master = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the file itself, without Spark and brokers.")
    ] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Check a pipeline and change nothing: the file, its SQL, its topics, tables and checkpoints.

    A topic that the brokers would create is named, with the nearest existing one.

    \b
    Examples:
      ottla pipeline check orders.yaml
      ottla pipeline check orders.yaml --quick
    """
    from ottla.cli.tasks.pipeline import Wanted, check_pipeline

    raise typer.Exit(check_pipeline(Wanted(file, master, bootstrap), is_quick=quick))
