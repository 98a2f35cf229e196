"""`ottla consume`: read a topic, with or without a group."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, Bootstrap, ask, failures_told
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    RAW = "raw"


class Isolation(StrEnum):
    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


app = Tool("consume")


@app.command()
def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What to read.")],
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="As a member: go on where it has stopped, commit what was read.",
        ),
    ] = None,
    partitions: Annotated[
        list[int],
        typer.Option(
            "--partition", "-p", metavar="N", min=0, help="Only this one; may be repeated."
        ),
    ] = [],  # noqa: B006  The command line's library copies it.
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", "-B", help="From the first record there is.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            "-o",
            metavar="OFFSET",
            help="From this one; -N: the last N of each partition; earliest; latest.",
        ),
    ] = None,
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from-time",
            "-t",
            metavar="TIME",
            help="From then on: -10m, 2026-08-01T12:00, milliseconds since 1970.",
        ),
    ] = None,
    to_end: Annotated[
        bool,
        typer.Option("--to-end", "-e", help="Stop where the topic ends now; else follow it."),
    ] = False,
    max_messages: Annotated[
        int | None,
        typer.Option("--max-messages", "-n", metavar="N", min=1, help="Stop after so many."),
    ] = None,
    output_format: Annotated[
        OutputFormat,
        typer.Option(
            "--format",
            metavar="text|json|raw",
            help="raw: the values' own bytes, even on a terminal.",
        ),
    ] = OutputFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    show_keys: Annotated[bool, typer.Option("--keys", "-k", help="Show keys.")] = False,
    show_headers: Annotated[bool, typer.Option("--headers", "-H", help="Show headers.")] = False,
    show_timestamps: Annotated[
        bool, typer.Option("--timestamps", "-T", help="Show timestamps.")
    ] = False,
    show_places: Annotated[
        bool, typer.Option("--offsets", "-O", help="Show partitions and offsets.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Show all of these.")] = False,
    separator: Annotated[
        str,
        typer.Option(
            metavar="CHARACTERS", help=r"Between what is shown of a record, as typed: \t is a tab."
        ),
    ] = "\\t",
    delimiter: Annotated[
        str, typer.Option(metavar="CHARACTERS", help=r"After each record, as typed; '' for none.")
    ] = "\\n",
    isolation: Annotated[
        Isolation,
        typer.Option(
            metavar="read_committed|read_uncommitted",
            help="Whether records of open and aborted transactions show.",
        ),
    ] = Isolation.UNCOMMITTED,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
) -> None:
    """Read records from a topic.

    Without a place to begin, those that come from now on. Ends with Ctrl-C, after
    --max-messages, or with --to-end where the topic ended when it began (then it begins with the
    first record, unless another place is given).

    With --group it shares the topic's partitions with the group's other members. Where the group
    has committed nothing yet, it begins as without a group.

    \b
    Examples:
      ottla consume orders
      ottla consume orders --to-end --all
      ottla consume orders --from-time -10m --keys --headers
      ottla consume orders --partition 0 --offset 42 -n 1
      ottla consume orders --offset -5 --to-end --json | jq .value
      ottla consume orders --group billing --from-beginning
    """
    from ottla.cli.tasks import consume as task
    from ottla.cli.tasks import group_consume
    from ottla.cli.views.record_output import RecordOutput

    with failures_told():
        start = task.Start.choose(
            from_beginning=from_beginning, offset=offset, from_time=from_time, to_end=to_end
        )
        printing = RecordOutput.choose(
            format_name="json" if as_json else output_format.value,
            keys=show_keys or show_all,
            headers=show_headers or show_all,
            timestamps=show_timestamps or show_all,
            places=show_places or show_all,
            separator=separator,
            delimiter=delimiter,
        )

        if group is not None:
            group_consume.check_options(start, partitions)

    async def work(cluster: "Cluster") -> None:
        if group is not None:
            await group_consume.read_as_member(
                cluster,
                topic,
                group,
                start,
                printing,
                to_end=to_end,
                messages_max=max_messages,
                is_committed_only=isolation is Isolation.COMMITTED,
            )
            return
        await task.read_all(
            cluster,
            topic,
            sorted(set(partitions)),
            start,
            printing,
            to_end=to_end,
            messages_max=max_messages,
            is_committed_only=isolation is Isolation.COMMITTED,
        )

    ask(work, bootstrap)
