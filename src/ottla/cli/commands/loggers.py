"""`ottla loggers`: show and change how much brokers log, while they run."""

from enum import StrEnum
from typing import Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask
from ottla.cli.tool import Tool

app = Tool(
    "loggers",
    help="""See and change what brokers log, while they run.

    \b
    Examples:
      ottla loggers list
      ottla loggers set ottla.broker.replicas debug --broker 1
    """,
    contacts_cluster=True,
)


class Level(StrEnum):
    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    FATAL = "fatal"


Logger = Annotated[
    str, typer.Argument(metavar="LOGGER", help="A logger, or 'root' for all without an own level.")
]
Broker = Annotated[
    list[int],
    typer.Option("--broker", min=0, metavar="ID", help="Only this broker; may be repeated."),
]


@app.command("list")
def list_levels(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Only loggers with this in their name.")
    ] = "",
    exact: Annotated[bool, typer.Option("--exact", help="Only the logger of this name.")] = False,
    broker: Broker = [],  # noqa: B006  The command line's library copies it.
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show the loggers of the brokers and their levels.

    \b
    Examples:
      ottla loggers list
      ottla loggers list controller --broker 1
    """
    from ottla.cli.tasks.log_levels import list_loggers

    ask(lambda cluster: list_loggers(cluster, text, exact, broker, as_json=as_json), bootstrap)


@app.command("set")
def set_level(
    name: Logger,
    level: Annotated[
        Level,
        typer.Argument(
            metavar="trace|debug|info|warn|error|fatal",
            help="From here on it logs.",
            case_sensitive=False,
        ),
    ],
    broker: Broker = [],  # noqa: B006
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Set the level of a logger, and of those below it, until the broker restarts.

    \b
    Examples:
      ottla loggers set ottla.broker.replicas debug
      ottla loggers set root warn --broker 2
    """
    from ottla.cli.tasks.log_levels import set_level_of

    chosen = level.upper()
    ask(lambda cluster: set_level_of(cluster, name, chosen, broker, as_json=as_json), bootstrap)


@app.command("unset")
def unset_level(
    name: Logger,
    broker: Broker = [],  # noqa: B006
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Let a logger have the level of the one above it again.

    \b
    Examples:
      ottla loggers unset ottla.broker.replicas
    """
    from ottla.cli.tasks.log_levels import set_level_of

    ask(lambda cluster: set_level_of(cluster, name, None, broker, as_json=as_json), bootstrap)
