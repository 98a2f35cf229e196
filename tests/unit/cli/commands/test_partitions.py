"""`ottla partitions`: how it is called."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize(
    "arguments", [["reassign", "t", "--brokers", "1"], ["moves"], ["cancel"], ["elect"]]
)
def test_an_unreachable_cluster_is_named(arguments: list[str]) -> None:
    answer = CliRunner().invoke(app, ["partitions", *arguments, "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert "nothing listens there" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reassign", "t"], "give --brokers with topics, or --file"),
        (["reassign", "--brokers", "1"], "name the topics to move"),
        (["reassign", "t", "--brokers", "1;2"], "expected ids like 1,2,3"),
        (["elect", "--unclean"], "name the partitions it is for"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: list[str], words: str) -> None:
    answer = CliRunner().invoke(app, ["partitions", *arguments])
    assert answer.exit_code == 2
    assert words in answer.stderr


def test_a_missing_file_is_named() -> None:
    answer = CliRunner().invoke(app, ["partitions", "reassign", "--file", "/missing.json"])
    assert answer.exit_code == 1
    assert "/missing.json: no such file" in answer.stderr
