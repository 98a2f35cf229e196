"""Nodes of a real cluster die and restart while a producer runs at full speed: nothing is lost.

The producer is librdkafka's, idempotent and with acks=all. Every record it was told of is there
once and in order, whoever led meanwhile.
"""

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Message, Producer

from ottla.testing import Cluster

TOPIC = "orders"


class Writing:
    """Writes numbers, one after the other, until it is stopped."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.acknowledged: list[int] = []
        self.failures: list[KafkaError] = []
        self.gap_seconds = 0.0
        self._last = time.monotonic()
        self._count = 0
        self._is_stopping = False
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 120_000,
            }
        )
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Writing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping = True
        self._thread.join()

    def _write(self) -> None:
        while not self._is_stopping:
            for _ in range(100):
                try:
                    self._producer.produce(TOPIC, b"%d" % self._count, on_delivery=self._told)
                except BufferError:
                    break
                self._count += 1
            self._producer.poll(0.005)
        self._producer.flush(120)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        now = time.monotonic()
        self.gap_seconds = max(self.gap_seconds, now - self._last)
        self._last = now
        if error is not None:
            self.failures.append(error)
            return
        value = message.value()
        assert value is not None
        self.acknowledged.append(int(value))

    def until_it_goes_on(self, cluster: Cluster) -> None:
        seen = len(self.acknowledged)
        cluster.until(lambda: len(self.acknowledged) > seen + 1000, 60)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as made:
        made.create_topic(TOPIC)
        yield made


def is_whole(cluster: Cluster) -> bool:
    return sorted(cluster.isr(TOPIC)) == cluster.node_ids


def check(cluster: Cluster, writing: Writing) -> None:
    assert writing.failures == []
    values = [int(message.value or b"") for message in cluster.records(TOPIC)]
    assert values == list(range(len(values))), "lost, repeated or out of order"
    assert len(values) == len(writing.acknowledged)


@pytest.mark.timeout(180)
def test_leaders_and_controllers_are_killed_and_nothing_is_lost(cluster: Cluster) -> None:
    with Writing(cluster.bootstrap_servers) as writing:
        for victim_of in (lambda: cluster.leader(TOPIC), cluster.controller):
            writing.until_it_goes_on(cluster)
            victim = victim_of()
            cluster.kill(victim)
            writing.until_it_goes_on(cluster)
            cluster.start_node(victim)
            cluster.until(lambda: is_whole(cluster), 60)
    check(cluster, writing)


@pytest.mark.timeout(180)
def test_a_rolling_restart_loses_nothing(cluster: Cluster) -> None:
    with Writing(cluster.bootstrap_servers) as writing:
        for node_id in cluster.node_ids:
            writing.until_it_goes_on(cluster)
            cluster.restart(node_id)
            cluster.until(lambda: is_whole(cluster), 60)
        writing.until_it_goes_on(cluster)
    check(cluster, writing)
