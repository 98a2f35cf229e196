"""`ottla brokers`: how it is called."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app


@pytest.mark.parametrize(
    "arguments", [[], ["list"], ["drain", "1"], ["undrain", "1"], ["unregister", "1"]]
)
def test_an_unreachable_cluster_is_named(arguments: list[str]) -> None:
    answer = CliRunner().invoke(app, ["brokers", *arguments, "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert "nothing listens there" in answer.stderr


def test_json_before_the_command_is_never_overlooked() -> None:
    answer = CliRunner().invoke(app, ["brokers", "--json", "drain", "3"])
    assert answer.exit_code == 2
    assert "--json goes behind the command" in answer.stderr


def test_a_broker_is_called_by_its_id() -> None:
    assert CliRunner().invoke(app, ["brokers", "drain", "three"]).exit_code == 2
