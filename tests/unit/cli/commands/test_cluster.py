"""`ottla cluster`: what is refused before anything is asked."""

from typer.testing import CliRunner

from ottla.cli.app import app


def test_an_unreachable_cluster_is_named() -> None:
    answer = CliRunner().invoke(app, ["cluster", "-b", "127.0.0.1:1"])
    assert answer.exit_code == 1
    assert "nothing listens there" in answer.stderr
