"""`ottla topics`: what is refused before anything is asked."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "t", "-c", "retention.ms"], "expected name=value"),
        (["create", "t", "--assignment", "1:2", "-p", "3"], "by itself"),
        (["create", "t", "--assignment", "one"], "expected broker ids"),
        (["alter", "t"], "nothing to change"),
    ],
)
def test_contradictory_options_are_refused(arguments: list[str], words: str) -> None:
    answer = CliRunner().invoke(app, ["topics", *arguments, "-b", "127.0.0.1:1"])
    assert answer.exit_code == 2
    assert words in answer.stderr


@pytest.mark.parametrize(
    "arguments", [["create", "t"], ["list"], ["describe", "t"], ["delete", "t"]]
)
def test_an_unreachable_cluster_is_named(arguments: list[str]) -> None:
    answer = CliRunner().invoke(app, ["topics", *arguments, "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert answer.stderr == "ottla: cannot connect to 127.0.0.1:1: nothing listens there\n"


def test_the_cluster_is_taken_from_the_environment() -> None:
    runner = CliRunner(env={"OTTLA_BOOTSTRAP": "127.0.0.1:2"})
    assert "127.0.0.1:2" in runner.invoke(app, ["topics", "list"]).stderr
