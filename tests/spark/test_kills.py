"""Kill -9 in the middle: no row is lost, and none is in the Delta table twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ottla.testing import Broker
from tests.spark.conftest import need_java

ROWS = 4_000
PARTITIONS = 3
ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(1200)]


class Job:
    """The job in a process group of its own: Python, its JVM and their workers."""

    def __init__(self, broker: Broker, directory: Path, **more: Any) -> None:  # noqa: ANN401
        self.directory = directory
        order = {
            "bootstrap": broker.bootstrap_servers,
            "source": "source",
            "target": "target",
            "directory": str(directory),
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

    def wait_commits(self, count: int) -> None:
        """Until so many micro-batches more are in the table."""
        wanted = self.commits() + count
        while self.commits() < wanted and self.process.poll() is None:
            time.sleep(0.05)
        assert self.process.poll() is None, self.tail()

    def wait_both_began(self) -> None:
        """Until both queries have ended a micro-batch."""
        began = [self.directory / f"checkpoint-{name}/commits/0" for name in ("log", "lake")]
        while not all(path.exists() for path in began) and self.process.poll() is None:
            time.sleep(0.05)
        assert self.process.poll() is None, self.tail()

    def commits(self) -> int:
        return len(list((self.directory / "lake/_delta_log").glob("*.json")))

    def kill(self) -> None:
        """All of it at once, as a machine dies."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self) -> list[int]:
        """Spark's Python workers: what its daemon has forked."""
        listed = subprocess.run(
            ["ps", "-o", "pid=,ppid=,args=", "-g", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        lines = [line.split(None, 2) for line in listed.splitlines()]
        daemons = {int(pid) for pid, _, words in lines if "pyspark.daemon" in words}
        return [int(pid) for pid, parent, _ in lines if int(parent) in daemons]

    def wait_done(self) -> None:
        assert self.process.wait(900) == 0, self.tail()

    def tail(self) -> str:
        return (self.directory / "output.txt").read_text(errors="replace")[-6000:]

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._output.close()


NewJob = Callable[..., Job]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(process=True, data=tmp_path / "data", auto_create_topics_enable=False) as made:
        made.create_topic("source", PARTITIONS)
        made.create_topic("target", PARTITIONS)
        for partition in range(PARTITIONS):
            numbers = (str(number) for number in range(partition, ROWS, PARTITIONS))
            made.produce("source", *numbers, partition=partition)
        yield made


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Iterator[NewJob]:
    need_java()
    started: list[Job] = []
    directory = tmp_path / "job"
    directory.mkdir()

    def start(**more: Any) -> Job:  # noqa: ANN401
        started.append(Job(broker, directory, **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


def check(broker: Broker, directory: Path) -> Counter[int]:
    """All rows are in the table once, and in the topic at least once; how often there."""
    found = DeltaTable(str(directory / "lake")).to_pyarrow_table().column("number").to_pylist()
    assert sorted(found) == list(range(ROWS))
    written = Counter(int(record.value or b"") for record in broker.records("target"))
    assert sorted(written) == list(range(ROWS))
    return written


def test_a_driver_that_is_killed_goes_on_where_it_was(broker: Broker, job: NewJob) -> None:
    for pause_s in (0.0, 0.4):
        first = job()
        first.wait_commits(1)
        time.sleep(pause_s)
        first.kill()
    last = job()
    last.wait_done()
    check(broker, last.directory)


def test_workers_that_are_killed_have_their_tasks_run_again(broker: Broker, job: NewJob) -> None:
    """Some workers plan for the driver instead; with those a query ends, and is started again."""
    running = job()
    running.wait_commits(1)
    killed = 0
    while killed < 3:
        for pid in running.workers()[:1]:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        time.sleep(1)
        if running.process.poll() is not None:
            running = job()
    if running.process.wait(900) != 0:
        running = job()
    running.wait_done()
    check(broker, running.directory)


def test_a_broker_that_is_killed_is_waited_for(broker: Broker, job: NewJob) -> None:
    chance = random.Random(7)
    running = job(rows_a_batch=ROWS // 12)
    running.wait_both_began()  # At the first contact a broker that is not there is told at once.
    for _ in range(3):
        time.sleep(chance.uniform(0.1, 1.0))
        broker.kill()
        time.sleep(chance.uniform(0.1, 0.5))
        broker.start()
        if running.process.poll() is None:
            time.sleep(2)
    running.wait_done()
    written = check(broker, running.directory)
    # Idempotence: the sink's own retries add nothing; only tasks that Spark ran again do.
    assert sum(written.values()) < 2 * ROWS


def test_a_task_that_fails_at_its_end_is_run_again(broker: Broker, job: NewJob) -> None:
    """Speculation is on too; on one machine Spark starts no second copy beside the first."""
    running = job(stumbles=True, rows_a_batch=ROWS, settings={"spark.speculation": True})
    running.wait_done()
    check(broker, running.directory)
    assert (running.directory / "attempt-0-1").exists(), "no second attempt was made"
