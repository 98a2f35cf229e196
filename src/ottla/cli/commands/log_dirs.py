"""`ottla log-dirs`: log directories of brokers, with the size of each replica."""

from typing import Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask
from ottla.cli.tool import Tool

app = Tool(
    "log-dirs",
    help="""Show the log directories of brokers, and the size of each replica there.

    \b
    Examples:
      ottla log-dirs describe
    """,
    contacts_cluster=True,
)


@app.command()
def describe(
    topics: Annotated[
        list[str],
        typer.Argument(metavar="[TOPIC]...", help="Only replicas of these topics."),
    ] = [],  # noqa: B006  The command line's library copies it.
    broker: Annotated[
        list[int],
        typer.Option("--broker", metavar="ID", help="Only this broker; may be repeated."),
    ] = [],  # noqa: B006
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show the size and the lag of each replica, by broker and log directory.

    \b
    Examples:
      ottla log-dirs describe
      ottla log-dirs describe orders --broker 1
      ottla log-dirs describe --json | jq '.[] | select(.error != null)'
    """
    from ottla.cli.views.log_dir_view import describe_log_dirs

    ask(lambda cluster: describe_log_dirs(cluster, topics, broker, as_json=as_json), bootstrap)
