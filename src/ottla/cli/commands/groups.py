"""`ottla groups`: members, lag, and offset resets."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask, failures_told
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

app = Tool(
    "groups",
    help="""List, describe, reset and delete consumer groups.

    \b
    Examples:
      ottla groups list
      ottla groups describe billing
      ottla groups reset-offsets billing --topic orders --to-earliest --execute
    """,
    contacts_cluster=True,
)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
Names = Annotated[list[str], typer.Argument(metavar="GROUP...", help="The groups' names.")]


@app.command("list")
def list_all(
    states: Annotated[
        list[str],
        typer.Option(
            "--state",
            "-s",
            metavar="STATE",
            help="Only in this state, like Stable; may be repeated.",
        ),
    ] = [],  # noqa: B006  The command line's library copies it.
    types: Annotated[
        list[str],
        typer.Option(
            "--type", "-t", metavar="TYPE", help="Only classic, or consumer; may be repeated."
        ),
    ] = [],  # noqa: B006
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """List the groups.

    \b
    Examples:
      ottla groups list
      ottla groups list --state Empty --state Stable
      ottla groups list --type consumer --json | jq -r '.[].group'
    """
    from ottla.cli.views.group_view import list_groups

    ask(lambda cluster: list_groups(cluster, states, types, as_json=as_json), bootstrap)


@app.command()
def describe(
    names: Names,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show a group's members, offsets, and its lag in records and in time.

    Behind by time is the age of the oldest record that the group has not read.

    \b
    Examples:
      ottla groups describe billing
      ottla groups describe billing --json | jq '.[0].lag_seconds'
    """
    from ottla.cli.views.group_view import describe_groups

    ask(lambda cluster: describe_groups(cluster, names, as_json=as_json), bootstrap)


@app.command("reset-offsets")
def reset_offsets(
    name: Name,
    topics: Annotated[
        list[str],
        typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="All or some of its partitions."),
    ] = [],  # noqa: B006
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Every partition the group has an offset for.")
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the first record there is.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="Where it is: to export, or to come back to.")
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", metavar="N", min=0, help="To this offset.")
    ] = None,
    shift_by: Annotated[
        int | None,
        typer.Option("--shift-by", metavar="N", help="So many records on, or back if negative."),
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To a time: 2026-08-01T12:00, -10m."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="TIME", help="To so long ago: 90m, 1d, PT1H30M."),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option("--from-file", metavar="FILE", help="As --export wrote it, or Kafka's tool."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this it only shows what it would do.")
    ] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print the offsets as CSV, as Kafka's tool does.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Let a group go on from another place. Nobody may be reading for it.

    Without --execute nothing is changed. An offset that a partition does not hold becomes the
    nearest one that it does.

    \b
    Examples:
      ottla groups reset-offsets billing --topic orders --to-earliest
      ottla groups reset-offsets billing --topic orders:0,2 --shift-by -100 --execute
      ottla groups reset-offsets billing --all-topics --by-duration 2h --execute
      ottla groups reset-offsets billing --all-topics --to-current --export > billing.csv
      ottla groups reset-offsets billing --from-file billing.csv --execute
    """
    from ottla.cli.tasks.offset_reset import Selection, Target, reset

    target = Target(
        to_earliest,
        to_latest,
        to_current,
        to_offset,
        shift_by,
        to_datetime,
        by_duration,
        from_file,
    )
    selection = Selection(topics, all_topics)
    with failures_told():
        target.check()
        selection.check(target)

    async def work(cluster: "Cluster") -> None:
        await reset(
            cluster,
            name,
            target,
            selection,
            is_executed=execute,
            export=export,
            as_json=as_json,
        )

    ask(work, bootstrap)


@app.command()
def delete(
    names: Names,
    topics: Annotated[
        list[str],
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC",
            help="Only forget the offsets of this; may be repeated.",
        ),
    ] = [],  # noqa: B006
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
) -> None:
    """Delete groups with their offsets; or only their offsets of some topics.

    On a terminal it asks first. A group with members cannot be deleted.

    \b
    Examples:
      ottla groups delete billing
      ottla groups delete billing analytics --yes
      ottla groups delete billing --topic old-orders
    """
    from ottla.cli.views.terminal import plural, say
    from ottla.client.groups import Groups

    if not yes and sys.stdin.isatty():
        what = f"the offsets of {', '.join(topics)} in" if topics else "all offsets of"
        typer.confirm(f"Delete {what} {', '.join(names)}?", abort=True)

    async def work(cluster: "Cluster") -> None:
        groups = Groups(cluster)
        for name in names:
            if not topics:
                await groups.delete(name)
                say(f"Group {name} deleted.")
                continue
            await groups.describe(name)  # Raises if there is none.
            places = [place for place in await groups.offsets(name) if place.topic in topics]
            if places:
                await groups.delete_offsets(name, places)
            say(f"Group {name}: {plural(len(places), 'offset')} deleted.")

    ask(work, bootstrap)
