"""`copy_job` as a process that a test starts, watches and kills."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable

from ottla.testing import Broker

ROWS = 3_000
PARTITIONS = 3
PADDING = 4_000  # Bytes of a value: more than the buffers between Spark's processes hold.
RECORDS_AT_ONCE = 50
QUERIES = ("log", "lake")
ROOT = Path(__file__).resolve().parent.parent.parent
WAIT_SECONDS_MAX = 400


class Attempt(NamedTuple):
    """One attempt at a task of a query: in which Python, forked by which of Spark's daemons."""

    stage: int
    partition: int
    number: int
    pid: int
    daemon: int


class Job:
    """The job in a process group of its own: Python, its JVM and their workers."""

    def __init__(self, broker: Broker, directory: Path, **more: Any) -> None:  # noqa: ANN401
        self.directory = directory
        order = {
            "bootstrap": broker.bootstrap_servers,
            "source": "source",
            "target": "target",
            "directory": str(directory),
            "rows_a_batch": ROWS,
            **more,
        }
        self._output = (directory / "output.txt").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.copy_job", json.dumps(order)],
            stdout=self._output,
            stderr=self._output,
            cwd=ROOT,
            start_new_session=True,
        )

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not is_so():
            assert self.process.poll() is None, self.tail()
            assert time.monotonic() < deadline, f"waited in vain until {what}: {self.tail()}"
            time.sleep(0.05)

    def wait_held(self, *queries: str) -> None:
        """Until these queries are in the middle of a micro-batch, with rows on their way."""
        notes = [self.directory / f"notes-{name}/middle" for name in queries]
        self.wait_until(lambda: all(note.exists() for note in notes), "tasks are held")

    def let_go(self) -> None:
        for name in QUERIES:
            (self.directory / f"notes-{name}").mkdir(exist_ok=True)
            (self.directory / f"notes-{name}/go").touch()

    def forget_middle(self) -> None:
        for name in QUERIES:
            (self.directory / f"notes-{name}/middle").unlink(missing_ok=True)

    def attempts(self, query: str) -> list[Attempt]:
        """All attempts so far, in no order."""
        return [
            Attempt(*map(int, note.name.split("-")[1:]), daemon=int(note.read_text() or 0))
            for note in (self.directory / f"notes-{query}").glob("attempt-*")
        ]

    def held(self, query: str) -> Attempt:
        """The first attempt that waits in its middle."""
        return next(a for a in self.attempts(query) if (a.partition, a.number) == (0, 0))

    def commits(self) -> int:
        return len(list((self.directory / "lake/_delta_log").glob("*.json")))

    def kill(self) -> None:
        """All of it at once, as a machine dies."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_done(self) -> None:
        assert self.process.wait(WAIT_SECONDS_MAX) == 0, self.tail()

    def tail(self) -> str:
        return (self.directory / "output.txt").read_text(errors="replace")[-6000:]

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._output.close()


def fill(broker: Broker) -> None:
    """The numbers below `ROWS`, each in a record of some kilobytes."""
    broker.create_topic("source", PARTITIONS)
    broker.create_topic("target", PARTITIONS)
    for partition in range(PARTITIONS):
        values = [f"{n} {'x' * PADDING}" for n in range(partition, ROWS, PARTITIONS)]
        for start in range(0, len(values), RECORDS_AT_ONCE):
            broker.produce("source", *values[start : start + RECORDS_AT_ONCE], partition=partition)


def check(broker: Broker, directory: Path) -> Counter[int]:
    """All rows are in the table once, and in the topic at least once; how often there."""
    found = DeltaTable(str(directory / "lake")).to_pyarrow_table().column("number").to_pylist()
    assert sorted(found) == list(range(ROWS))
    values = [bytes(record.value or b"") for record in broker.records("target")]
    assert all(len(value) > PADDING for value in values)
    written = Counter(int(value.partition(b" ")[0]) for value in values)
    assert sorted(written) == list(range(ROWS))
    return written


def children(parent: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in listed.stdout.split()]


def parent_of(pid: int) -> int:
    listed = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return int(listed.stdout)
