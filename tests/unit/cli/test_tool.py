"""Options that come before or after a command."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-b", NOWHERE, "topics", "list"],
        ["topics", "-b", NOWHERE, "list"],
        ["topics", "list", "-b", NOWHERE],
        ["--bootstrap-server", NOWHERE, "cluster"],
        ["brokers", "-b", NOWHERE],
        ["brokers", "-b", NOWHERE, "drain", "3"],
        ["-b", NOWHERE, "brokers"],
        ["-b", "127.0.0.1:2", "topics", "-b", "127.0.0.1:3", "list", "-b", NOWHERE],
    ],
    ids=" ".join,
)
def test_a_bootstrap_server_may_come_anywhere_and_the_last_one_counts(arguments: list[str]) -> None:
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 1
    assert NOWHERE in answer.stderr
