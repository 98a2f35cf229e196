"""The runner, with a real client and a coordinator."""

import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from ottla.client.message import Message
from ottla.consumer.errors import CannotConsume, HandlerFailed
from ottla.consumer.runner import Runner
from ottla.consumer.settings import Backoff
from tests.unit.consumer.mock_cluster import MockCluster

SECONDS_MAX = 40


def committed(cluster: MockCluster, topic: str = "t", group: str = "g") -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    (found,) = consumer.committed([Place(topic, 0)], timeout=10)
    consumer.close()
    return int(found.offset)


def run_until(runner: Runner, is_enough: Callable[[], bool]) -> None:
    """Run it in this thread until the condition holds."""

    def watch() -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not is_enough() and time.monotonic() < deadline:
            time.sleep(0.02)
        runner.stop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        runner.run()
    finally:
        watcher.join()
    assert is_enough()


def test_records_are_handled_and_committed() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a", b"b", b"c")
    seen: list[bytes | None] = []
    runner = Runner(
        "t", lambda m: seen.append(m.value), group="g", bootstrap_servers=cluster.bootstrap
    )
    run_until(runner, lambda: len(seen) == 3)
    assert seen == [b"a", b"b", b"c"]
    assert committed(cluster) == 3


def test_a_failing_record_is_retried_and_then_dead_lettered() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a", b"bad", b"c")
    seen: list[bytes | None] = []
    dead: list[bytes | None] = []

    def handle(message: Message) -> None:
        seen.append(message.value)
        if message.value == b"bad":
            raise ValueError("bad")

    runner = Runner(
        "t", handle, group="g", bootstrap_servers=cluster.bootstrap, retries=2, backoff=0.01
    )
    run_until(runner, lambda: seen[-1:] == [b"c"])
    assert seen == [b"a", b"bad", b"bad", b"bad", b"c"]
    assert committed(cluster) == 3
    reader = Runner(
        "t.dlq", lambda m: dead.append(m.value), group="r", bootstrap_servers=cluster.bootstrap
    )
    run_until(reader, lambda: bool(dead))
    assert dead == [b"bad"]


def test_without_dead_letters_a_failure_ends_the_runner_uncommitted() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a", b"bad")

    def handle(message: Message) -> None:
        if message.value == b"bad":
            raise ValueError("bad")

    runner = Runner(
        "t",
        handle,
        group="g",
        bootstrap_servers=cluster.bootstrap,
        retries=1,
        backoff=Backoff(0.0),
        dead_letters=False,
    )
    with pytest.raises(HandlerFailed, match="t-0 at offset 1"):
        runner.run()
    assert committed(cluster) == 1


def test_at_most_once_commits_first_and_tries_once() -> None:
    cluster = MockCluster()
    cluster.write("t", b"bad", b"b")
    seen: list[tuple[bytes | None, int]] = []

    def handle(message: Message) -> None:
        seen.append((message.value, committed(cluster)))
        if message.value == b"bad":
            raise ValueError("bad")

    runner = Runner(
        ["t"],
        handle,
        group="g",
        bootstrap_servers=cluster.bootstrap,
        delivery="at-most-once",
        dead_letters=False,
    )
    run_until(runner, lambda: len(seen) == 2)
    assert [value for value, _ in seen] == [b"bad", b"b"]
    assert min(offset for _, offset in seen) >= 1
    assert committed(cluster) == 2


def test_stop_finishes_the_record_in_progress_and_starts_no_other() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a", b"b", b"c")
    seen: list[bytes | None] = []
    begun = threading.Event()

    def handle(message: Message) -> None:
        begun.set()
        time.sleep(0.3)
        seen.append(message.value)

    runner = Runner("t", handle, group="g", bootstrap_servers=cluster.bootstrap)
    run_until(runner, begun.is_set)
    assert len(seen) < 3
    assert committed(cluster) == len(seen)


def test_at_most_once_a_clean_stop_loses_nothing_with_a_slow_handler() -> None:
    cluster = MockCluster()
    cluster.write("t", *[b"%d" % number for number in range(20)])
    seen: list[bytes | None] = []

    def handle(message: Message) -> None:
        time.sleep(0.3)
        seen.append(message.value)

    runner = Runner(
        "t",
        handle,
        group="g",
        bootstrap_servers=cluster.bootstrap,
        delivery="at-most-once",
        finish_s=1.0,
    )
    run_until(runner, lambda: bool(seen))
    assert committed(cluster) == len(seen) < 20


def test_a_hanging_handler_is_abandoned_after_finish_s() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a")
    begun, release = threading.Event(), threading.Event()

    def handle(_message: Message) -> None:
        begun.set()
        release.wait(SECONDS_MAX)

    runner = Runner("t", handle, group="g", bootstrap_servers=cluster.bootstrap, finish_s=0.2)
    started = time.monotonic()
    run_until(runner, begun.is_set)
    release.set()
    assert time.monotonic() - started < SECONDS_MAX
    assert committed(cluster) < 0


def test_an_unknown_config_is_named() -> None:
    runner = Runner("t", print, group="g", no_such_thing=1)
    with pytest.raises(CannotConsume, match=r"no\.such\.thing"):
        runner.run()


def test_an_empty_topic_list_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one topic"):
        Runner([], print, group="g")
