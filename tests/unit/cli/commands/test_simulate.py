import os
import subprocess
import sys


def ottla(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ottla.cli.main", "simulate", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "random"},
    )


def test_a_seed_is_replayed_and_says_what_happened() -> None:
    first, second = ottla("--seed", "2"), ottla("--seed", "2", "--trace")
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stdout.startswith("seed 2: ")
    assert first.stdout == second.stdout.splitlines(keepends=True)[-1]
    assert "node-1>producer-0 receives" in second.stdout


def test_seeds_of_a_cluster_run_beside_each_other() -> None:
    done = ottla("--brokers", "3", "--seed", "9", "--count", "2", "--jobs", "2", "--seconds", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 seeds from 9 on, 0 failed\n"


def test_a_fault_that_does_not_exist_is_refused() -> None:
    done = ottla("--brokers", "3", "--without", "earthquake")
    assert done.returncode == 2
    assert "earthquake" in done.stderr
