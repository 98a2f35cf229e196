"""Typer as all tools use it: one look of help, and options that come before or after a command."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from ottla.cli.tasks.bootstrap_option import BootstrapBefore, Profile

Function = TypeVar("Function", bound=Callable[..., Any])
Click: TypeAlias = Any  # Classes of the click inside typer, which have no public name.

WIDTH_MAX = 100
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": WIDTH_MAX}
WHOLE = 1000  # Characters of a description: none is cut.


def write_parameters(command: Click, context: Click, formatter: Click) -> None:
    """Write arguments and options: the name of each value, never its Python type."""
    arguments, options = [], []
    for item in command.get_params(context):
        if item.param_type_name == "argument":
            arguments.append((item.metavar or item.name, item.help or ""))
        elif record := item.get_help_record(context):
            options.append(record)
    for title, rows in (("Arguments", arguments), ("Options", options)):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def usage_pieces(command: Click, context: Click) -> list[str]:
    items = command.get_params(context)
    arguments = [item.metavar or item.name for item in items if item.param_type_name == "argument"]
    return ["[OPTIONS]", *arguments]


class ToolCommand(TyperCommand):
    def collect_usage_pieces(self, ctx: Click) -> list[str]:
        return usage_pieces(self, ctx)

    def format_options(self, ctx: Click, formatter: Click) -> None:
        write_parameters(self, ctx, formatter)

    def get_help_option_names(self, ctx: Click) -> list[str]:
        return list(ctx.help_option_names)


class ToolGroup(TyperGroup):
    def collect_usage_pieces(self, ctx: Click) -> list[str]:
        return [*usage_pieces(self, ctx), "COMMAND ..."]

    def format_options(self, ctx: Click, formatter: Click) -> None:
        write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Click, formatter: Click) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(WHOLE))
            for name, command in found
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_help_option_names(self, ctx: Click) -> list[str]:
        return list(ctx.help_option_names)


class Tool(typer.Typer):
    """A command, or a group of commands; each with `bootstrap` also has `--profile`."""

    def __init__(
        self, name: str, *, help: str | None = None, contacts_cluster: bool = False, **more: Click
    ) -> None:
        if help is not None:
            more["help"] = help
        super().__init__(
            name=name,
            cls=ToolGroup,
            context_settings=CONTEXT,
            no_args_is_help=more.pop("no_args_is_help", help is not None),
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            **more,
        )
        if contacts_cluster:
            self.callback()(cluster_options)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **more: Click
    ) -> Callable[[Function], Function]:
        register = super().command(
            name, cls=cls or ToolCommand, **{"context_settings": CONTEXT, **more}
        )

        def registered(function: Function) -> Function:
            register(with_profile(function))
            return function

        return registered


def cluster_options(bootstrap: BootstrapBefore = None, profile: Profile = None) -> None:
    """Options of the cluster before the command; their callbacks remember them."""


def with_profile(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a parameter `profile` after its `bootstrap`, if it has one."""
    signature = inspect.signature(function)
    if "bootstrap" not in signature.parameters or "profile" in signature.parameters:
        return function

    @wraps(function)
    def called(*, profile: str | None = None, **arguments: object) -> object:  # noqa: ARG001
        return function(**arguments)

    parameters = list(signature.parameters.values())
    place = list(signature.parameters).index("bootstrap") + 1
    added = inspect.Parameter(
        "profile", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Profile
    )
    keywords = [
        item.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for item in (*parameters[:place], added, *parameters[place:])
    ]
    called.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
    called.__annotations__ = {**function.__annotations__, "profile": Profile}
    return called
