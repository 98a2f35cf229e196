"""All commands under one roof."""

import re

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli.app import COMMANDS, app
from ottla.cli.main import LIGHT_COMMANDS

NAMES = [name for rows in COMMANDS.values() for name in rows]


def help_of(*command: str) -> str:
    answer = CliRunner().invoke(app, [*command, "-h"], env={"COLUMNS": "100"})
    assert answer.exit_code == 0, answer.output
    return answer.output


def subcommands(name: str) -> list[str]:
    root = typer.main.get_command(app)
    command = root.get_command(None, name)
    return list(getattr(command, "commands", {}))


EVERY = [[name] for name in NAMES] + [[name, sub] for name in NAMES for sub in subcommands(name)]


def test_help_lists_every_command_with_its_whole_description() -> None:
    shown = help_of()
    for rows in COMMANDS.values():
        for name, text in rows.items():
            assert re.search(rf"^  {name} +\S", shown, re.MULTILINE)
            assert text in re.sub(r"\s+", " ", shown)


@pytest.mark.parametrize("command", EVERY, ids=" ".join)
def test_help_has_examples_names_for_values_and_no_cut_description(command: list[str]) -> None:
    shown = help_of(*command)
    assert shown.lower().startswith("usage: ottla")
    assert "Examples:" in shown
    assert "..." not in re.sub(r"\S\.\.\.|\.\.\.\]|COMMAND \.\.\.", "", shown)
    assert not re.search(r"<\w|--\S+ (TEXT|INTEGER|FLOAT|PATH)\b", shown)
    assert max(map(len, shown.splitlines())) <= 100


def test_every_argument_has_a_name_for_people() -> None:
    root = typer.main.get_command(app)
    for name in set(NAMES) - set(LIGHT_COMMANDS):
        command = root.get_command(None, name)
        for each in getattr(command, "commands", {"": command}).values():
            arguments = [item for item in each.params if item.param_type_name == "argument"]
            assert all(item.metavar for item in arguments), (name, each.name)


@pytest.mark.parametrize("command", EVERY, ids=" ".join)
def test_both_names_of_help_say_the_same(command: list[str]) -> None:
    runner = CliRunner()
    assert runner.invoke(app, [*command, "--help"]).output == help_of_same(runner, command)


def help_of_same(runner: CliRunner, command: list[str]) -> str:
    return runner.invoke(app, [*command, "-h"]).output


def test_the_version_is_an_option_of_the_root() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.startswith("ottla ")


def test_the_brokers_commands_keep_their_own_arguments() -> None:
    answer = CliRunner().invoke(app, ["start", "/no/such/file", "--set", "a=b"])
    assert answer.exit_code == 1
    assert set(LIGHT_COMMANDS) <= set(NAMES)


def test_a_mistyped_command_names_the_nearest() -> None:
    answer = CliRunner().invoke(app, ["topic", "list"])
    assert answer.exit_code == 2
    assert "Did you mean 'topics'" in answer.stderr
