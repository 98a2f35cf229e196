"""The table of commands. A command's module is imported when the command is used.

To add a command: its module in `commands`, with an `app`, and its row here.
"""

from importlib import import_module
from typing import Annotated, Final

import typer

from ottla import __version__
from ottla.cli.main import LIGHT_COMMANDS, run_light
from ottla.cli.tasks.bootstrap_option import BootstrapBefore, Profile
from ottla.cli.tool import CONTEXT, Click, ToolGroup

COMMANDS: Final = {
    "Run brokers": {
        "up": "Start a broker, or a whole cluster, with no configuration at all.",
        "start": "Start a broker by Kafka's server.properties.",
        "format": "Prepare log directories for a node, as Kafka's storage tool does.",
    },
    "Records": {
        "produce": "Write records to a topic.",
        "consume": "Read records from a topic.",
        "dlq": "Look at dead letters, and replay them.",
    },
    "Administration": {
        "topics": "Create, list, describe, change and delete topics.",
        "partitions": "Move replicas between brokers, and elect leaders.",
        "records": "Delete the oldest records of partitions.",
        "groups": "List, describe, reset and delete consumer groups.",
        "configs": "See and change the configs of topics, brokers and groups.",
        "cluster": "Show brokers, quorum, partitions that lack replicas, disks and features.",
        "brokers": "List brokers, drain one of its replicas, forget one that is gone.",
        "log-dirs": "Show the log directories of brokers, and the size of each replica.",
        "loggers": "Show and change the levels of the brokers' loggers while they run.",
        "profile": "Name clusters, and choose the one that commands ask.",
    },
    "Pipelines": {
        "pipeline": "Check and run declared pipelines on Spark.",
        "cdc": "Changes of a database, as records: each committed change once, in order.",
    },
    "Files and tests": {
        "log": "The files of a data directory, as a person reads them.",
        "simulate": "Run whole brokers in virtual time, with faults, and check their promises.",
    },
}


class Commands(ToolGroup):
    def __init__(self, **settings: Click) -> None:
        super().__init__(**settings)
        # Names for "did you mean"; `get_command` makes the commands.
        self.commands = dict.fromkeys(self.list_commands(None))  # type: ignore[assignment]

    def list_commands(self, ctx: Click) -> list[str]:  # noqa: ARG002
        return [name for rows in COMMANDS.values() for name in rows]

    def get_command(self, ctx: Click, cmd_name: str) -> Click:
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name in LIGHT_COMMANDS:
            return _light_command(cmd_name)
        module = cmd_name.replace("-", "_")
        command = typer.main.get_command(import_module(f"ottla.cli.commands.{module}").app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Click, formatter: Click) -> None:  # noqa: ARG002
        width = max(map(len, self.commands))
        for title, rows in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows.items()])


def _light_command(name: str) -> Click:
    """A command of the broker parses its arguments by itself, help included."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    @alone.command(name, add_help_option=False, context_settings=settings)
    def run(context: typer.Context) -> None:
        raise typer.Exit(run_light(name, context.args))

    return typer.main.get_command(alone)


app = typer.Typer(
    name="ottla",
    cls=Commands,
    context_settings=CONTEXT,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ottla {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", is_eager=True, callback=_tell_version
        ),
    ] = False,
    bootstrap: BootstrapBefore = None,
    profile: Profile = None,
) -> None:
    """A commit log that speaks Kafka's protocol: the broker and its tools.

    \b
    Examples:
      ottla up                                start a broker on port 9092
      echo hello | ottla produce greetings    write to it
      ottla consume greetings --from-beginning
      ottla topics --help                     every command explains itself
    """
