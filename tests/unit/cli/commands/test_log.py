"""`ottla log dump` as a command."""

from pathlib import Path

from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.records.record import Record, build_batch


def test_several_files_are_shown_and_damage_is_the_exit_status(tmp_path: Path) -> None:
    whole, torn = tmp_path / "a.log", tmp_path / "b.log"
    data = bytes(build_batch([Record(0, 0, None, b"value")]))
    whole.write_bytes(data)
    torn.write_bytes(data + data[:30])
    answer = CliRunner().invoke(app, ["log", "dump", str(whole)])
    assert (answer.exit_code, answer.output.count("value value")) == (0, 1)
    answer = CliRunner().invoke(app, ["log", "dump", str(torn), str(whole)])
    assert answer.exit_code == 1
    assert answer.stdout.count("value value") == 2
    assert "torn" in answer.stderr


def test_records_may_be_said_to_be_data(tmp_path: Path) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    path.write_bytes(build_batch([Record(0, 0, None, b"plain")]))
    assert CliRunner().invoke(app, ["log", "dump", str(path)]).exit_code == 1
    answer = CliRunner().invoke(app, ["log", "dump", "--data", str(path)])
    assert "value plain" in answer.stdout


def test_a_missing_file_is_named() -> None:
    answer = CliRunner().invoke(app, ["log", "dump", "/no/such.log"])
    assert answer.exit_code == 1
    assert answer.stderr == "ottla: /no/such.log: no such file or directory\n"
