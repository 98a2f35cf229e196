"""How long a member of a group goes without records when another one joins or leaves.

Members are librdkafka's, in threads; a producer writes to every partition all the time.
"""

import threading
import time
from collections.abc import Callable
from itertools import pairwise

from confluent_kafka import Consumer, Producer, TopicPartition

PARTITIONS = 12
RECORDS_PER_S = 1000
SETTLE_SECONDS = 3.0
READY_SECONDS_MAX = 30.0
HEARTBEAT_MS = 500
STRATEGIES = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


class Reader:
    """A member that notes when records come."""

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str) -> None:
        config: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
        config |= STRATEGIES[strategy]
        if strategy != "consumer":
            config["heartbeat.interval.ms"] = HEARTBEAT_MS
        self.arrivals: list[float] = []
        self._consumer = Consumer(config)
        self._owned: set[int] = set()  # Kept here: to ask the client from elsewhere may block it.
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._is_running = True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def partitions(self) -> int:
        return len(self._owned)

    def stop(self) -> None:
        self._is_running = False
        self._thread.join()
        self._consumer.close()

    def pause_since(self, moment: float) -> float:
        """The longest time without records from `moment` on."""
        times = [moment, *(at for at in list(self.arrivals) if at >= moment), time.monotonic()]
        return max(after - before for before, after in pairwise(times))

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned |= {one.partition for one in partitions}

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned -= {one.partition for one in partitions}

    def _run(self) -> None:
        while self._is_running:
            for message in self._consumer.consume(100, 0.02):
                if message.error() is None:
                    self.arrivals.append(time.monotonic())


class Writer:
    """A producer that never rests."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "log_level": 0})
        self._topic = topic
        self._is_running = True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._is_running = False
        self._thread.join()
        self._producer.flush(10)

    def _run(self) -> None:
        while self._is_running:
            for index in range(PARTITIONS):
                self._producer.produce(self._topic, b"x" * 100, partition=index)
            self._producer.poll(0)
            time.sleep(PARTITIONS / RECORDS_PER_S)


def pauses(bootstrap: str, group: str, topic: str, strategy: str) -> dict[str, float]:
    """The longest pauses of those who stay, when a third member joins and when it leaves."""
    writer = Writer(bootstrap, topic)
    readers = [Reader(bootstrap, group, topic, strategy) for _ in range(2)]
    try:
        _wait(lambda: all(reader.partitions == PARTITIONS / 2 for reader in readers))
        _wait(lambda: all(reader.arrivals for reader in readers))
        time.sleep(1)
        found = {}
        began = time.monotonic()
        third = Reader(bootstrap, group, topic, strategy)
        readers.append(third)
        _wait(lambda: all(reader.partitions == PARTITIONS / 3 for reader in readers))
        time.sleep(SETTLE_SECONDS)
        found["join"] = max(reader.pause_since(began) for reader in readers[:2])
        began = time.monotonic()
        readers.pop().stop()
        _wait(lambda: all(reader.partitions == PARTITIONS / 2 for reader in readers))
        time.sleep(SETTLE_SECONDS)
        found["leave"] = max(reader.pause_since(began) for reader in readers)
        return found
    finally:
        for reader in readers:
            reader.stop()
        writer.stop()


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "the group did not settle"
        time.sleep(0.01)
