"""`ottla produce`: what is refused before anything is written."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["x", "-f", __file__], 2, "give values or --file"),
        (["x", "-k", "k", "-K", ":"], 2, "give --key or --key-separator"),
        (["-K", ""], 2, "must not be empty"),
        (["--tombstone"], 2, "needs --key"),
        (["-H", "noequals", "x"], 2, "expected name=value"),
        (["-f", "/no/such/file"], 1, "no such file"),
    ],
)
def test_invalid_options_are_refused_before_connecting(
    arguments: list[str], status: int, words: str
) -> None:
    answer = CliRunner().invoke(app, ["produce", "t", "-b", "127.0.0.1:1", *arguments])
    assert answer.exit_code == status
    assert words in answer.stderr
    assert "connect" not in answer.stderr


def test_an_unreachable_broker_is_named(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("a\n")
    answer = CliRunner().invoke(app, ["produce", "t", "-b", "127.0.0.1:1", "-f", str(file)])
    assert answer.exit_code == 1
    assert answer.stderr == "ottla: cannot connect to 127.0.0.1:1: nothing listens there\n"
    assert answer.stdout == ""
