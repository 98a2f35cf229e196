"""`ottla dlq`: show dead letters, and send them back to their original topics."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

app = Tool(
    "dlq",
    help="""Look at dead letters, and replay them.

    \b
    Examples:
      ottla dlq peek orders.dlq
      ottla dlq replay orders.dlq --execute
    """,
    contacts_cluster=True,
)

Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The dead letter topic, like orders.dlq.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="GROUP",
        help="Whose offsets remember it. Default: ottla-dlq-replay-TOPIC.",
    ),
]


@app.command()
def peek(
    topic: Topic,
    max_messages: Annotated[
        int, typer.Option("--max-messages", "-n", metavar="N", min=1, help="Stop after so many.")
    ] = 10,
    is_all: Annotated[
        bool, typer.Option("--all", "-a", help="Those that were replayed already, too.")
    ] = False,
    stacktraces: Annotated[
        bool, typer.Option("--stacktraces", help="Show where in the handler it failed.")
    ] = False,
    group: Group = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show dead letters that were not replayed: where each came from, its error, its value.

    Reads the headers that ottla.consumer and Kafka Connect write. Nothing is changed.

    \b
    Examples:
      ottla dlq peek orders.dlq
      ottla dlq peek orders.dlq -n 1 --stacktraces
      ottla dlq peek orders.dlq -n 1000 --json | jq -r .error_class | sort | uniq -c
    """
    from ottla.cli.views.dead_letter_view import peek as show

    async def work(cluster: "Cluster") -> None:
        await show(
            cluster,
            topic,
            group=group,
            messages_max=max_messages,
            is_all=is_all,
            has_stacktraces=stacktraces,
            shows_json=as_json,
        )

    ask(work, bootstrap)


@app.command()
def replay(
    topic: Topic,
    target: Annotated[
        str | None,
        typer.Option("--to", metavar="TOPIC", help="Default: the topic that each came from."),
    ] = None,
    max_messages: Annotated[
        int | None,
        typer.Option("--max-messages", "-n", metavar="N", min=1, help="Stop after so many."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this it only shows what it would do.")
    ] = False,
    group: Group = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Send dead letters back, as they were: key, value, timestamp and their own headers.

    What was replayed is remembered, even if it is killed in the middle, so that a second replay
    sends only what came since. Without --execute nothing is sent. To replay again: ottla groups
    reset-offsets.

    \b
    Examples:
      ottla dlq replay orders.dlq
      ottla dlq replay orders.dlq -n 1 --execute
      ottla dlq replay orders.dlq --to orders-retry --execute
    """
    from ottla.cli.tasks import replay as task

    wanted = task.replay_settings(
        topic,
        group=group,
        target=target,
        messages_max=max_messages,
        is_executed=execute,
        shows_json=as_json,
    )
    ask(lambda cluster: task.replay(cluster, wanted), bootstrap)
