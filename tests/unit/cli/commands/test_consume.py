"""`ottla consume`: what is refused before anything is read."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "1", "--from-beginning"], "give one of"),
        (["-o", "1", "--from-time", "-1h"], "give one of"),
        (["-o", "first"], "expected a number"),
        (["-o", "--5"], "expected a number"),
    ],
)
def test_contradictory_options_are_refused(arguments: list[str], words: str) -> None:
    answer = CliRunner().invoke(app, ["consume", "t", "-b", "127.0.0.1:1", *arguments])
    assert answer.exit_code == 2
    assert words in answer.stderr
