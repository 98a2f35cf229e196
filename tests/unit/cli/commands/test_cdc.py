"""`ottla cdc`: its help, and what is said when nobody answers."""

from typer.testing import CliRunner

from ottla.cli.app import app


def test_help_shows_examples_and_comes_without_the_databases_library() -> None:
    answer = CliRunner().invoke(app, ["cdc", "postgres", "--help"])
    assert answer.exit_code == 0
    assert "ottla cdc postgres postgresql://localhost/shop" in answer.stdout


def test_an_unreachable_database_is_named() -> None:
    answer = CliRunner().invoke(app, ["cdc", "postgres", "host=127.0.0.1 port=1 dbname=x"])
    assert answer.exit_code == 1
    assert answer.stderr.startswith("ottla: PostgreSQL: connection to server at")
    assert len(answer.stderr.splitlines()) == 1
