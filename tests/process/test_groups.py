"""Groups over one topic while members and the broker are killed: what a group promises, it keeps.

Each record is handled by each group at least once, no partition has two owners at a time, and no
group forgets where it was.
OTTLA_CRASH_SECONDS says for how long (30 by default; here a half of it).
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import cycle
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.conformance.broker_process import BrokerProcess
from tests.conformance.librdkafka import create
from tests.process import group_member
from tests.process.conftest import NewBroker
from tests.process.ownership import Endings, overlaps, owned, read_notes

SECONDS = float(os.environ.get("OTTLA_CRASH_SECONDS", "30")) / 2
SECONDS_MAX = 40
PARTITIONS = 6
MEMBERS = 3
PAUSE_SECONDS = 3.0  # Longer than a session.
TOPIC = "orders"
# How members share; those of a group with two ways are of the one and of the other in turn.
GROUPS = {
    "billing": ("range",),
    "analytics": ("consumer",),
    "audit": ("cooperative-sticky",),
    "shipping": ("consumer", "range"),
}
QUICK = {
    "group_initial_rebalance_delay_ms": "0",
    "group_min_session_timeout_ms": "1000",
    "group_consumer_heartbeat_interval_ms": "200",
    "group_consumer_min_heartbeat_interval_ms": "200",
    "group_consumer_session_timeout_ms": "2000",
    "group_consumer_min_session_timeout_ms": "2000",
    "offsets_topic_num_partitions": "3",
}


class Group:
    """The members of one group; who is killed is replaced."""

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        self.name = name
        self.notes = directory / f"{name}.notes"
        self.endings = Endings()
        self._command = [sys.executable, group_member.__file__, bootstrap, TOPIC, name]
        self._command.append(str(self.notes))
        self._strategies = cycle(GROUPS[name])
        begin(bootstrap, name)
        self.members = [self._new() for _ in range(MEMBERS)]
        self._paused: list[tuple[float, subprocess.Popen[bytes]]] = []

    def disturb(self, chance: random.Random) -> None:
        self.wake()
        victim = chance.choice(self.members)
        if chance.random() < 0.25:
            self.endings.stopped[victim.pid].append(time.monotonic())
            victim.send_signal(signal.SIGSTOP)
            self._paused.append((time.monotonic() + PAUSE_SECONDS, victim))
            return
        self._end(victim)
        self.members.append(self._new())

    def wake(self, *, everyone: bool = False) -> None:
        for due, member in list(self._paused):
            if everyone or time.monotonic() >= due:
                member.send_signal(signal.SIGCONT)
                self._paused.remove((due, member))

    def end(self) -> None:
        for member in list(self.members):
            self._end(member)

    def handled(self) -> set[tuple[int, int]]:
        notes = read_notes(self.notes)
        return {(note.partition, note.offset) for note in notes if note.word == "handled"}

    def _end(self, member: subprocess.Popen[bytes]) -> None:
        assert member.poll() is None, f"a member of {self.name} ended by itself"
        self.endings.killed[member.pid] = time.monotonic()
        member.kill()
        member.wait()
        self.members.remove(member)
        self._paused = [item for item in self._paused if item[1] is not member]

    def _new(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._command, next(self._strategies)])


class Load:
    """A producer that remembers where each record went."""

    def __init__(self, bootstrap: str) -> None:
        self.written: set[tuple[int, int]] = set()
        self.errors: list[object] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def run(self, deadline: float) -> None:
        number = 0
        while time.monotonic() < deadline:
            self._producer.produce(
                TOPIC, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._answered
            )
            number += 1
            self._producer.poll(0)
            time.sleep(0.003)
        assert self._producer.flush(SECONDS_MAX) == 0, "some records were never answered"

    def _answered(self, error: object, message: Message) -> None:
        if error is None:
            self.written.add((message.partition(), message.offset()))
        else:
            self.errors.append(error)


def begin(bootstrap: str, group: str) -> None:
    """Commit the start of every partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    offsets = [TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def disturb(
    broker: BrokerProcess, groups: list[Group], deadline: float, chance: random.Random
) -> None:
    """Kill and stop members at random moments, and the broker twice."""
    began = time.monotonic()
    crashes = [began + (deadline - began) * part for part in (0.35, 0.7)]
    for group in cycle(groups):
        time.sleep(chance.uniform(0.1, 0.8))
        if time.monotonic() > deadline:
            return
        group.disturb(chance)
        if crashes and time.monotonic() > crashes[0]:
            crashes.pop(0)
            broker.kill()
            broker.start()


@pytest.mark.timeout(int(SECONDS) + 2 * SECONDS_MAX)
def test_each_group_handles_every_record_and_nothing_has_two_owners(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    broker = new_broker(**QUICK).start()
    create(broker.bootstrap, TOPIC, PARTITIONS)
    load = Load(broker.bootstrap)
    groups = [Group(name, broker.bootstrap, tmp_path) for name in GROUPS]
    deadline = time.monotonic() + SECONDS
    producing = threading.Thread(target=load.run, args=(deadline,))
    producing.start()
    try:
        disturb(broker, groups, deadline, random.Random(seed))
        producing.join()
        for group in groups:
            group.wake(everyone=True)
        wait_until_handled(groups, load.written)
        now = time.monotonic()
    finally:
        for group in groups:
            group.end()
    assert load.errors == [], f"seed {seed}"
    for group in groups:
        notes = read_notes(group.notes)
        assert [note for note in notes if note.word == "astray"] == [], f"seed {seed}"
        intervals = owned(notes, group.endings, now)
        assert overlaps(intervals) == [], f"{group.name} of seed {seed}"
        owners = {one.pid for in_order in intervals.values() for one in in_order}
        assert len(owners) > 1, f"{group.name} never changed (seed {seed})"


def wait_until_handled(groups: list[Group], written: set[tuple[int, int]]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    for group in groups:
        while missing := written - group.handled():
            assert time.monotonic() < deadline, f"{group.name} never saw {sorted(missing)[:10]}"
            time.sleep(0.2)
