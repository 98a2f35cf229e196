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


TASKS = """
import gc, types
from ottla.spark.python_daemon import set_modules_aside

frozen = []

def worker(sock, authenticated):
    frozen.append(gc.get_freeze_count())
    return 3

daemon = types.ModuleType("daemon")
daemon.worker = worker
set_modules_aside(daemon)
assert [daemon.worker("a socket", True) for _ in range(3)] == [3, 3, 3]
assert frozen[0] == 0, "what the first task loads is not there yet"
assert frozen[1] > 1000
assert frozen[2] <= frozen[1], "only once: later tasks leave garbage, too"
"""


def run(code: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ended(failure: str) -> "subprocess.CompletedProcess[str]":
    return run(FORK.format(failure=failure))


def test_a_worker_with_a_closed_socket_ends_quietly() -> None:
    done = ended("BrokenPipeError(32, 'Broken pipe')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("failure", ["ValueError('wrong')", "ConnectionResetError('gone')"])
def test_any_other_failure_is_printed(failure: str) -> None:
    done = ended(failure)
    assert done.returncode == 1
    assert failure.partition("(")[0] in done.stderr


def test_objects_of_the_first_task_are_frozen_once() -> None:
    done = run(TASKS)
    assert done.returncode == 0, done.stderr
