"""A short run of `make chaos`: it makes faults, checks what clients saw, and leaves nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.simulation.history.history_checker import check
from ottla.simulation.history.operations import Kind, from_lines

SECONDS = 12


@pytest.mark.timeout(240)
def test_a_short_chaos_run_finds_nothing_wrong(tmp_path: Path) -> None:
    directory = tmp_path / "chaos"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "tests.chaos", "--loopback", "--seed", "4"),
            *("--seconds", str(SECONDS), "--directory", str(directory)),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    assert (directory / "timeline.png").stat().st_size > 10_000
    assert not (directory / "nodes").exists(), "data is kept only after a failure"
    operations = list(from_lines((directory / "history.jsonl").read_text().splitlines()))
    assert sum(operation.kind is Kind.SEND for operation in operations) > 200
    report = check(operations)
    assert report.is_good, str(report)
    assert report.operations > 300
