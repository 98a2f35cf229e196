"""Which cluster a command asks: `--bootstrap-server`, `--profile`, variables, the profile in use.

The first of these that is given: -b of the command, -b before the command, --profile,
OTTLA_BOOTSTRAP, OTTLA_PROFILE, the profile in use, 127.0.0.1:9092.
"""

import os
from collections.abc import Mapping
from typing import Annotated

import typer

BOOTSTRAP_DEFAULT = "127.0.0.1:9092"
BOOTSTRAP, PROFILE = "ottla.bootstrap", "ottla.profile"  # Keys of typer's `meta`.


def _remember_bootstrap(context: typer.Context, value: str | None) -> str | None:
    if value is not None:
        context.meta[BOOTSTRAP] = value
    return value


def _remember_profile(context: typer.Context, value: str | None) -> str | None:
    if value is not None and is_typed(context, "profile"):
        context.meta[PROFILE] = value
    return value


def _resolved(context: typer.Context, value: str) -> str:
    if context.resilient_parsing or is_typed(context, "bootstrap"):
        return value
    return given_bootstrap(context.meta)


def is_typed(context: typer.Context, name: str) -> bool:
    """Whether an option comes from the command line, not from a variable or a default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def given_bootstrap(meta: Mapping[str, str]) -> str:
    """The servers to contact, unless the command itself has an option that names them."""
    from ottla.cli.tasks.client_options import failures_told
    from ottla.cli.tasks.profiles import Profiles

    if BOOTSTRAP in meta:
        return meta[BOOTSTRAP]
    with failures_told():
        if PROFILE in meta:
            return Profiles.load().bootstrap_of(meta[PROFILE])
        if named := os.environ.get("OTTLA_BOOTSTRAP"):
            return named
        return Profiles.load().bootstrap_in_use() or BOOTSTRAP_DEFAULT


_HELP = "A broker of the cluster, or several with commas between."

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="OTTLA_BOOTSTRAP",
        metavar="HOST:PORT",
        help=_HELP,
        callback=_resolved,
    ),
]
BootstrapBefore = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server", "-b", metavar="HOST:PORT", help=_HELP, callback=_remember_bootstrap
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The cluster of this profile: see 'ottla profile --help'.",
        envvar="OTTLA_PROFILE",
        is_eager=True,
        callback=_remember_profile,
    ),
]
