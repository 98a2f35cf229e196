import subprocess
import sys

import pytest

FORK = """
import os, sys, types
from ottla.spark.python_daemon import end_in_silence

def worker(sock, authenticated):
    raise {failure}

daemon = types.ModuleType("daemon")
daemon.worker = worker
end_in_silence(daemon)
daemon.worker("a socket", True)
"""


def ended(failure: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", FORK.format(failure=failure)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_worker_to_whom_nobody_listens_ends_in_silence() -> None:
    done = ended("BrokenPipeError(32, 'Broken pipe')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("failure", ["ValueError('wrong')", "ConnectionResetError('gone')"])
def test_any_other_failure_is_told(failure: str) -> None:
    done = ended(failure)
    assert done.returncode == 1
    assert failure.partition("(")[0] in done.stderr
