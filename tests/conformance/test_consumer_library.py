"""`ottla.consumer` with a broker: crashes, slow handlers, partitions that move, dead letters."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.client.blocking import Client, Outgoing
from ottla.client.groups import Groups
from ottla.consumer import Record, Runner
from ottla.consumer.dead_letters import read_dead_letter
from ottla.model.types import TopicPartition
from tests.conformance.broker_process import BrokerProcess, Flavour

SECONDS_MAX = 50
SCRIPT = Path(__file__).parent / "consumer_script.py"
QUICK = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500"}
RECORDS, PARTITIONS = 400, 4


@pytest.fixture(scope="module")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Its groups do not wait for members that may come, and give up silent ones early."""
    process = BrokerProcess(flavour, tmp_path_factory.mktemp("library"), QUICK)
    process.start()
    yield process
    process.stop()


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    with Client(bootstrap) as client:
        client.run(client.admin.create_topic(topic, partitions=PARTITIONS))
        client.write(
            topic,
            [Outgoing(b"%d" % n, partition=n % PARTITIONS) for n in range(RECORDS)],
        )
    return topic


class Note(NamedTuple):
    word: str
    time: float
    pid: int
    partition: int
    offset: int


class Crew:
    """Consumer processes of one group, and what they noted."""

    def __init__(self, bootstrap: str, topic: str, directory: Path) -> None:
        self._arguments = [bootstrap, topic, f"{topic}-g"]
        self._file = directory / "notes"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, seconds: float, **options: object) -> "subprocess.Popen[bytes]":
        told = [f"{name}={json.dumps(value)}" for name, value in options.items()]
        command = [sys.executable, str(SCRIPT), *self._arguments, str(self._file), str(seconds)]
        process = subprocess.Popen([*command, *told], stderr=subprocess.PIPE)
        self._processes.append(process)
        return process

    def notes(self, word: str) -> list[Note]:
        if not self._file.exists():
            return []
        cells = [line.split() for line in self._file.read_text().splitlines()]
        return [
            Note(kind, float(at), int(pid), int(partition), int(offset))
            for kind, at, pid, partition, offset in cells
            if kind == word
        ]

    def wait(self, is_enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not is_enough():
            for process in self._processes:
                if process.returncode is None and process.poll() not in (None, 0, -9):
                    _, told = process.communicate()
                    raise AssertionError(told.decode())
            assert time.monotonic() < deadline, Counter(note.pid for note in self.notes("end"))
            time.sleep(0.05)

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.communicate(timeout=SECONDS_MAX)


@pytest.fixture
def crew(bootstrap: str, filled: str, tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(bootstrap, filled, tmp_path)
    yield crew
    crew.end()


def places(notes: list[Note]) -> set[tuple[int, int]]:
    return {(note.partition, note.offset) for note in notes}


def committed(bootstrap: str, group: str) -> int:
    with Client(bootstrap) as client:
        offsets = client.run(Groups(client.cluster).offsets(group))
    return sum(item.offset for item in offsets.values())


def test_at_least_once_loses_nothing_when_a_consumer_is_killed(
    crew: Crew, bootstrap: str, filled: str
) -> None:
    options = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 200, "commit_s": 0.2}
    first = crew.start(0.01, **options)
    crew.wait(lambda: len(crew.notes("end")) > RECORDS // 4)
    first.kill()
    first.wait()
    assert len(places(crew.notes("end"))) < RECORDS
    crew.start(0.001, **options)
    crew.wait(lambda: len(places(crew.notes("end"))) == RECORDS)
    crew.end()
    assert committed(bootstrap, f"{filled}-g") == RECORDS


def test_at_most_once_repeats_nothing_when_a_consumer_is_killed(
    crew: Crew, bootstrap: str, filled: str
) -> None:
    options = {
        "session_timeout_ms": 1000,
        "heartbeat_interval_ms": 200,
        "delivery": "at-most-once",
    }
    first = crew.start(0.01, **options)
    crew.wait(lambda: len(crew.notes("end")) > RECORDS // 4)
    first.kill()
    first.wait()
    second = crew.start(0.001, **options)
    crew.wait(lambda: committed(bootstrap, f"{filled}-g") == RECORDS)
    crew.end()
    begun = crew.notes("begin")
    assert len(begun) == len(places(begun)), "handled twice"
    assert second.pid in {note.pid for note in begun}
    assert len(begun) >= RECORDS - 100, "no more is lost than was under way"


def test_a_handler_slower_than_the_groups_patience_keeps_its_partitions(
    bootstrap: str, filled: str
) -> None:
    handled: list[Record] = []
    assigned: list[int] = []
    slow = 4.0

    def handle(record: Record) -> None:
        if not handled:
            time.sleep(slow)
        handled.append(record)

    runner = Runner(
        filled,
        handle,
        group=f"{filled}-g",
        bootstrap_servers=bootstrap,
        max_poll_interval_ms=1500,
        session_timeout_ms=1500,
        heartbeat_interval_ms=300,
    )
    own = runner._assigned

    def count(consumer: object, partitions: list[object]) -> None:
        assigned.append(len(partitions))
        own(consumer, partitions)

    runner._assigned = count  # type: ignore[method-assign]
    run_until(runner, lambda: len(handled) == RECORDS)
    assert assigned == [PARTITIONS], "it was given up and had to join again"
    assert len({(record.partition, record.offset) for record in handled}) == RECORDS


def run_until(runner: Runner, is_enough: Callable[[], bool]) -> None:
    def watch() -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not is_enough() and time.monotonic() < deadline:
            time.sleep(0.05)
        runner.stop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        runner.run()
    finally:
        watcher.join()
    assert is_enough()


@pytest.mark.parametrize(
    "options",
    [
        {"partition_assignment_strategy": "range"},
        {"partition_assignment_strategy": "cooperative-sticky"},
        {"group_protocol": "consumer"},
    ],
    ids=["range", "cooperative-sticky", "new-protocol"],
)
def test_partitions_that_move_are_handled_in_order_and_by_one_owner_at_a_time(
    crew: Crew, bootstrap: str, filled: str, options: dict[str, object]
) -> None:
    first = crew.start(0.03, **options)
    crew.wait(lambda: len(crew.notes("end")) > 20)
    second = crew.start(0.03, **options)
    crew.wait(lambda: second.pid in {note.pid for note in crew.notes("end")})
    first.send_signal(signal.SIGTERM)
    assert first.wait(SECONDS_MAX) == 0
    crew.wait(lambda: len(places(crew.notes("end"))) == RECORDS)
    crew.end()
    handled = Counter((note.partition, note.offset) for note in crew.notes("end"))
    assert max(handled.values()) == 1, "all moves were clean, so nothing needs to be repeated"
    spans: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for begin, end in zip(
        sorted(crew.notes("begin"), key=lambda note: (note.partition, note.offset)),
        sorted(crew.notes("end"), key=lambda note: (note.partition, note.offset)),
        strict=True,
    ):
        spans[begin.partition].append((begin.time, end.time, begin.offset))
    for times in spans.values():
        for before, after in pairwise(times):
            assert before[1] <= after[0], f"offset {after[2]} began before {before[2]} had ended"
    assert committed(bootstrap, f"{filled}-g") == RECORDS


def test_a_broker_that_is_killed_and_comes_back_is_waited_for(
    new_broker: Callable[..., BrokerProcess], topic: str, tmp_path: Path
) -> None:
    broker = new_broker(QUICK).start()
    with Client(broker.bootstrap) as client:
        client.run(client.admin.create_topic(topic, partitions=PARTITIONS))
        client.write(topic, [Outgoing(b"%d" % n, partition=n % PARTITIONS) for n in range(RECORDS)])
    crew = Crew(broker.bootstrap, topic, tmp_path)
    try:
        crew.start(0.01, commit_s=0.2, reconnect_backoff_max_ms=200)
        crew.wait(lambda: len(crew.notes("end")) > RECORDS // 4)
        broker.kill()
        broker.start()
        crew.wait(lambda: len(places(crew.notes("end"))) == RECORDS)
        crew.wait(lambda: committed(broker.bootstrap, f"{topic}-g") == RECORDS)
    finally:
        crew.end()


def test_what_still_fails_becomes_a_dead_letter_and_is_committed(
    bootstrap: str, topic: str
) -> None:
    with Client(bootstrap) as client:
        client.run(client.admin.create_topic(topic))
        client.write(
            topic,
            [
                Outgoing(b"\xff\x00%d" % n, b"key", (("own", b"\xfe"),), timestamp_ms=1000 + n)
                for n in range(5)
            ],
        )
    tries: Counter[int] = Counter()

    async def handle(record: Record) -> None:
        tries[record.offset] += 1
        if record.offset == 2:
            raise ValueError("two is bad")

    runner = Runner(
        topic, handle, group=f"{topic}-g", bootstrap_servers=bootstrap, retries=2, backoff=0.05
    )
    run_until(runner, lambda: tries[4] == 1)
    assert tries == {0: 1, 1: 1, 2: 3, 3: 1, 4: 1}
    assert committed(bootstrap, f"{topic}-g") == 5
    with Client(bootstrap) as client:
        count = len(client.run(client.cluster.topic(f"{topic}.dlq")).partitions)
        wanted = {TopicPartition(f"{topic}.dlq", index): 0 for index in range(count)}
        (found,) = client.read(wanted, to_end=True)
    assert (found.key, found.value, found.timestamp_ms) == (b"key", b"\xff\x002", 1002)
    letter = read_dead_letter(found)
    assert (letter.topic, letter.partition, letter.offset) == (topic, 0, 2)
    assert (letter.error_class, letter.error_message) == ("builtins.ValueError", "two is bad")
    assert letter.headers == (("own", b"\xfe"),)
