"""All commands under one roof."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cli.main import LIGHT_COMMANDS

TOOLS = ("topics", "configs", "produce", "consume", "cluster", "brokers", "log", "simulate")


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert all(f"  {command} " in shown for command in (*LIGHT_COMMANDS, *TOOLS))


@pytest.mark.parametrize("command", TOOLS)
def test_every_tool_explains_itself(command: str) -> None:
    answer = CliRunner().invoke(app, [command, "--help"])
    assert answer.exit_code == 0
    assert "Usage" in answer.output


def test_the_version_is_an_option_of_the_root() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.startswith("ottla ")


def test_the_brokers_commands_keep_their_own_arguments() -> None:
    answer = CliRunner().invoke(app, ["start", "/no/such/file", "--set", "a=b"])
    assert answer.exit_code == 1
