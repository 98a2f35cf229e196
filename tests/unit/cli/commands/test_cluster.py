"""`ottla cluster`: what is refused before anything is asked."""

from typer.testing import CliRunner

from ottla.cli.app import app


def test_a_cluster_that_is_not_there_is_named() -> None:
    answer = CliRunner().invoke(app, ["cluster", "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert "nothing listens there" in answer.stderr
