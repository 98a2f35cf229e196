"""`ottla records`: delete the oldest records of partitions."""

from typing import Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask
from ottla.cli.tool import Tool

app = Tool(
    "records",
    help="""Delete the oldest records of partitions.

    \b
    Examples:
      ottla records delete orders --before -7d --dry-run
    """,
    contacts_cluster=True,
)


@app.callback()
def records() -> None:
    pass


@app.command()
def delete(
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC...", help="Topics, or some partitions, orders:0,2."),
    ],
    before: Annotated[
        str,
        typer.Option(
            "--before", metavar="OFFSET|TIME", help="An offset, a time (-7d, ISO 8601), or 'end'."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Delete all records before an offset or a time.

    It shows what goes, and on a terminal it asks first.

    \b
    Examples:
      ottla records delete orders:0 --before 1200
      ottla records delete orders --before 2026-08-01T00:00 --dry-run
      ottla records delete orders payments --before end --yes
    """
    from ottla.cli.tasks.delete_records import delete_before

    ask(
        lambda cluster: delete_before(
            cluster, topics, before, is_dry=dry_run, may_ask=not yes, as_json=as_json
        ),
        bootstrap,
    )
