"""`ottla groups`: what is refused before anything is asked."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topic", "t"], "give one of --to-earliest"),
        (["--topic", "t", "--to-earliest", "--to-latest"], "give one of"),
        (["--to-earliest"], "give --topic"),
        (["--to-earliest", "--topic", "t", "--all-topics"], "give --topic"),
        (["--from-file", "f", "--topic", "t"], "the file says"),
        (["--topic", "t", "--by-duration", "soon"], "expected a time"),
    ],
)
def test_a_reset_that_contradicts_itself_is_refused(arguments: list[str], words: str) -> None:
    answer = CliRunner().invoke(app, ["groups", "reset-offsets", "g", *arguments, "-b", "x:1"])
    assert answer.exit_code == 2
    assert words in answer.stderr


@pytest.mark.parametrize("arguments", [["list"], ["describe", "g"], ["delete", "g"]])
def test_an_unreachable_cluster_is_named(arguments: list[str]) -> None:
    answer = CliRunner().invoke(app, ["groups", *arguments, "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert answer.stderr == "ottla: cannot connect to 127.0.0.1:1: nothing listens there\n"


@pytest.mark.parametrize("command", ["list", "describe", "reset-offsets", "delete"])
def test_help_has_examples(command: str) -> None:
    answer = CliRunner().invoke(app, ["groups", command, "--help"])
    assert f"ottla groups {command}" in answer.stdout
