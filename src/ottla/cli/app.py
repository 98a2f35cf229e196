"""The whole command line: all commands, for `--help` and for the tools."""

from typing import Annotated, Any, Final

import typer

from ottla import __version__
from ottla.cli.commands import brokers, cdc, configs, dlq, groups, log, loggers, pipeline, topics
from ottla.cli.commands.cluster import cluster
from ottla.cli.commands.consume import consume
from ottla.cli.commands.produce import produce
from ottla.cli.commands.simulate import simulate
from ottla.cli.main import run_light

app = typer.Typer(
    name="ottla",
    help="A commit log that speaks Kafka's protocol: the broker and its tools.",
    epilog="Start with: ottla up",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# The broker's own commands parse their arguments themselves, help included.
_UNTOUCHED: Final[dict[str, Any]] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True},
}


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
) -> None:
    pass


@app.command(**_UNTOUCHED)
def up(context: typer.Context) -> None:
    """Start a broker with no configuration at all."""
    raise typer.Exit(run_light("up", context.args))


@app.command(**_UNTOUCHED)
def start(context: typer.Context) -> None:
    """Start a broker by Kafka's server.properties."""
    raise typer.Exit(run_light("start", context.args))


@app.command("format", **_UNTOUCHED)
def format_directories(context: typer.Context) -> None:
    """Prepare log directories for a node, as Kafka's storage tool does."""
    raise typer.Exit(run_light("format", context.args))


app.add_typer(topics.app)
app.command()(produce)
app.command()(consume)
app.add_typer(groups.app)
app.add_typer(dlq.app)
app.add_typer(pipeline.app)
app.add_typer(cdc.app)
app.add_typer(configs.app)
app.command()(cluster)
app.add_typer(brokers.app)
app.add_typer(loggers.app)
app.add_typer(log.app)
app.command()(simulate)
