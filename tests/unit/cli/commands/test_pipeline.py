from pathlib import Path

from typer.testing import CliRunner

from ottla.cli.app import app

WRONG = "sources:\n  orders:\n    topik: orders\n"
RIGHT = """
sources:
  orders: {topic: orders}
sinks:
  lake: {from: orders, delta: lake}
"""


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["pipeline", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_file_is_checked_without_spark(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(RIGHT)
    status, out, _ = run("check", str(file), "--quick")
    assert (status, out) == (
        0,
        "pipeline: 1 source, 0 steps, 1 sink; nothing is wrong with it.\n",
    )


def test_errors_name_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(WRONG)
    for command in (["check", "--quick"], ["check"], ["run"]):
        status, out, told = run(*command, str(file))
        assert (status, out) == (1, "")
        assert f"{file}:3: source 'orders' has no 'topik'; did you mean 'topic'?" in told


def test_the_help_shows_how_it_is_used() -> None:
    status, out, _ = run("run", "--help")
    assert status == 0
    assert "--master" in out
    assert "ottla pipeline run orders.yaml --once" in out
