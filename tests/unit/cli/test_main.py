"""The entry point of `ottla`."""

import subprocess
import sys

import pytest

from ottla import __version__
from ottla.cli.main import LIGHT_COMMANDS, run_light


def run(*arguments: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python, "-m", "ottla.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"ottla {__version__}\n"


def test_the_package_runs_as_the_command_does() -> None:
    command = [sys.executable, "-m", "ottla", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == f"ottla {__version__}\n"


def test_python_optimize_is_refused() -> None:
    refused = run("up", python=("-O",))
    assert refused.returncode == 1
    assert "-O" in refused.stderr


def test_the_commands_of_the_broker_import_neither_typer_nor_rich() -> None:
    code = (
        "import sys; from ottla.cli.main import run_light; run_light('start', ['/none']);"
        "assert not {'typer', 'rich', 'click'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=30)


def test_a_refused_setting_is_one_line_and_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_light("up", ["--set", "num.partitons=1\x1b"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("ottla: num.partitons (--set)")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("command", LIGHT_COMMANDS)
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_light(command, ["--help"])
    assert ended.value.code == 0
    assert "Examples:" in capsys.readouterr().out
