"""Kill -9 in the middle of a micro-batch: no row is lost, none is in the Delta table twice.

Every job holds a task of each query in its middle, so that what is killed is killed there. Only a
killed driver is started again by the test; all else Spark and the connector have to bear.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Broker
from tests.spark.conftest import need_java
from tests.spark.copying import QUERIES, ROWS, Job, check, children, fill, parent_of
from tests.spark.standalone import HOSTS, Standalone

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(600)]

NewJob = Callable[..., Job]
# So that a task that lasts a little longer than another is started a second time at once.
SPECULATION = {
    "spark.speculation": True,
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": 1.1,
    "spark.speculation.quantile": 0.3,
    "spark.speculation.minTaskRuntime": "100ms",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(process=True, data=tmp_path / "data", auto_create_topics_enable=False) as made:
        fill(made)
        yield made


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Iterator[NewJob]:
    need_java()
    started: list[Job] = []
    directory = tmp_path / "job"
    directory.mkdir()

    def start(**more: Any) -> Job:  # noqa: ANN401
        started.append(Job(broker, directory, holds=True, **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    """Two machines with two cores each: one may be held while another works."""
    need_java()
    with Standalone(tmp_path, cores=2) as made:
        yield made


def test_a_driver_that_is_killed_goes_on_where_it_was(broker: Broker, job: NewJob) -> None:
    for _ in range(2):
        running = job()
        running.wait_held(*QUERIES)
        running.kill()
        running.forget_middle()
    last = job()
    last.wait_held(*QUERIES)
    assert last.commits() == 1, "the table was made, and nothing is in it yet"
    last.let_go()
    last.wait_done()
    check(broker, last.directory)


def test_a_driver_that_is_killed_between_micro_batches_repeats_none_of_them(
    broker: Broker, job: NewJob
) -> None:
    for pause_s in (0.0, 0.4):
        running = job(rows_a_batch=ROWS // 6)
        running.let_go()
        wanted = running.commits() + 2
        running.wait_until(lambda: running.commits() >= wanted, "two micro-batches are committed")  # noqa: B023
        time.sleep(pause_s)
        running.kill()
    last = job(rows_a_batch=ROWS // 6)
    last.wait_done()
    check(broker, last.directory)


def test_a_broker_that_is_killed_is_waited_for(broker: Broker, job: NewJob) -> None:
    running = job()
    running.wait_held(*QUERIES)
    broker.kill()
    running.let_go()  # Reads and writes of the held tasks now meet nobody.
    time.sleep(1)
    broker.start()
    running.wait_done()
    written = check(broker, running.directory)
    # Idempotence: the sink's own retries add nothing; only tasks that Spark ran again do.
    if all(attempt.number == 0 for attempt in running.attempts("log")):
        assert written.total() == ROWS


def test_python_workers_that_are_killed_have_their_tasks_run_again(
    broker: Broker, job: NewJob, cluster: Standalone
) -> None:
    running = job(master=cluster.master)
    running.wait_held(*QUERIES)
    # All of an executor: those that read, those that hold, those that write.
    daemon = running.held("log").daemon
    for pid in children(daemon):
        os.kill(pid, signal.SIGKILL)
    running.let_go()
    running.wait_done()
    check(broker, running.directory)
    assert 1 in {a.number for a in running.attempts("log") if a.partition == 0}


def test_an_executor_that_is_killed_has_its_tasks_run_elsewhere(
    broker: Broker, job: NewJob, cluster: Standalone
) -> None:
    running = job(master=cluster.master)
    running.wait_held(*QUERIES)
    daemon = running.held("log").daemon
    os.kill(parent_of(daemon), signal.SIGKILL)
    running.let_go()
    running.wait_done()
    check(broker, running.directory)
    again = [a for a in running.attempts("log") if a.partition == 0 and a.number == 1]
    assert again
    assert all(attempt.daemon != daemon for attempt in again)


@pytest.mark.skipif(HOSTS[0] == HOSTS[1], reason="Speculation needs two hosts.")
def test_two_attempts_at_one_task_at_a_time_change_nothing(
    broker: Broker, job: NewJob, cluster: Standalone
) -> None:
    running = job(master=cluster.master, settings=SPECULATION)
    running.wait_held(*QUERIES)

    def copies(query: str) -> list[Any]:
        first = running.held(query)
        return [a for a in running.attempts(query) if a[:2] == first[:2] and a.number > 0]

    # The first attempts are held and alive, so these are second ones beside them.
    running.wait_until(lambda: all(map(copies, QUERIES)), "second attempts have begun")
    for query in QUERIES:
        first, second = running.held(query), copies(query)[0]
        assert second.daemon != first.daemon
    running.let_go()
    running.wait_done()
    check(broker, running.directory)
