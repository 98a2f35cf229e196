"""`ottla dlq`: the command."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize("command", ["peek", "replay"])
def test_an_unreachable_cluster_is_named(command: str) -> None:
    answer = CliRunner().invoke(app, ["dlq", command, "t.dlq", "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert answer.stderr == "ottla: cannot connect to 127.0.0.1:1: nothing listens there\n"


@pytest.mark.parametrize("command", ["peek", "replay"])
def test_help_has_examples(command: str) -> None:
    answer = CliRunner().invoke(app, ["dlq", command, "--help"])
    assert f"ottla dlq {command} orders.dlq" in answer.stdout
