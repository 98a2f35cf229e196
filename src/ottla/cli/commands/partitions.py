"""`ottla partitions`: move replicas between brokers, and elect leaders."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.tasks.client_options import (
    BOOTSTRAP_DEFAULT,
    AsJson,
    Bootstrap,
    Misuse,
    ask,
    failures_told,
)
from ottla.cli.tool import Tool

app = Tool(
    "partitions",
    help="""Move replicas between brokers, and elect leaders.

    \b
    Examples:
      ottla partitions reassign orders --brokers 1,2,4 --dry-run
      ottla partitions moves
      ottla partitions elect
    """,
    contacts_cluster=True,
)

Topics = Annotated[
    list[str],
    typer.Argument(metavar="[TOPIC]...", help="Topics, or some of their partitions, orders:0,2."),
]


@app.command()
def reassign(
    topics: Topics = [],  # noqa: B006  The command line's library copies it.
    brokers: Annotated[
        str | None, typer.Option("--brokers", metavar="1,2,3", help="Only these get replicas.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="A plan, in Kafka's form.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="End when the moves have begun.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Move replicas of topics to these brokers, evenly, or as a file says.

    The plan is shown first, and on a terminal it asks. Replicas that are on one of the brokers stay
    there if the loads are even. The printed JSON is a plan for --file; its 'before' is the plan
    that goes back.

    \b
    Examples:
      ottla partitions reassign orders payments:0,3 --brokers 1,2,4
      ottla partitions reassign orders --brokers 2,3 --dry-run --json > plan.json
      ottla partitions reassign --file plan.json --no-wait
    """
    from ottla.cli.tasks.reassign import Manner, parse_plan, reassign_as
    from ottla.cli.tasks.reassign import reassign as move

    how = Manner(is_dry=dry_run, may_ask=not yes, waits=not no_wait, as_json=as_json)
    with failures_told():
        if (file is None) == (brokers is None):
            raise Misuse("give --brokers with topics, or --file")
        if (file is None) != bool(topics):
            raise Misuse("name the topics to move, unless a --file does")
        nodes = _parse_ids(brokers)
        if file is not None:
            plan = parse_plan(Path(file).read_text(), file)
            ask(lambda cluster: reassign_as(cluster, plan, how), bootstrap)
            return
    ask(lambda cluster: move(cluster, topics, nodes, how), bootstrap)


@app.command()
def moves(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: AsJson = False) -> None:
    """Show the partitions that are on the move between brokers, and how much is copied.

    \b
    Examples:
      ottla partitions moves
    """
    from ottla.cli.tasks.reassign import list_moves

    ask(lambda cluster: list_moves(cluster, as_json=as_json), bootstrap)


@app.command()
def cancel(
    topics: Topics = [],  # noqa: B006
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Stop the moves of these topics, or all of them: replicas stay where they were.

    \b
    Examples:
      ottla partitions cancel
      ottla partitions cancel orders
    """
    from ottla.cli.tasks.reassign import cancel as stop

    ask(lambda cluster: stop(cluster, topics, as_json=as_json), bootstrap)


@app.command()
def elect(
    topics: Topics = [],  # noqa: B006
    unclean: Annotated[
        bool,
        typer.Option("--unclean", help="Any replica, where none in sync is left: loses records."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Have the preferred leaders lead, or with --unclean any replica that is left.

    \b
    Examples:
      ottla partitions elect
      ottla partitions elect orders:0 --unclean
    """
    from ottla.cli.tasks.leader_election import elect as vote
    from ottla.client.reassignments import Election

    with failures_told():
        if unclean and not topics:
            raise Misuse("--unclean loses records: name the partitions it is for")
    if unclean and not yes and sys.stdin.isatty():
        typer.confirm(f"Elect a replica of {', '.join(topics)} and lose records?", abort=True)
    kind = Election.UNCLEAN if unclean else Election.PREFERRED
    ask(lambda cluster: vote(cluster, kind, topics, as_json=as_json), bootstrap)


def _parse_ids(text: str | None) -> list[int]:
    try:
        return [int(part) for part in (text or "").split(",") if text]
    except ValueError:
        raise Misuse(f"--brokers {text!r}: expected ids like 1,2,3") from None
