"""Nodes of a real cluster die and restart while a producer runs at full speed: nothing is lost.

The producer is librdkafka's, idempotent and with acks=all. Every record it was told of is there
once and in order, whoever led meanwhile.
"""

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.metadata import UnknownTopic
from ottla.testing import Cluster

TOPIC = "orders"
GROUP = "readers"


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


class Reading:
    """The one member of a group, which commits what it has read and notes what it was told."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.values: list[int] = []  # As they came, those that came again included.
        self.committed = 0  # Where the group is, as far as it was confirmed.
        self._is_stopping = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([TOPIC])
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Reading":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping = True
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._is_stopping:
            for message in self._consumer.consume(1000, 0.05):
                if message.error() is None:
                    self.values.append(int(message.value() or b""))
            self._commit()

    def _commit(self) -> None:
        try:
            done = self._consumer.commit(asynchronous=False)
        except KafkaException:
            return  # Nothing new, or nobody to commit to: the next one counts.
        for one in done or []:
            if one.error is None:
                self.committed = one.offset


def coordinator(cluster: Cluster) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    while True:
        try:
            described = admin.describe_consumer_groups([GROUP])[GROUP].result(30)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise  # Else: whoever is to coordinate has not heard of it yet.
        else:
            return int(described.coordinator.id)


def create_topic(cluster: Cluster, leader: int) -> None:
    """One partition, on all nodes."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    placed = [[leader, *(node for node in cluster.node_ids if node != leader)]]
    admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=placed)])[TOPIC].result(30)
    cluster.until(lambda: is_led_by(cluster, leader))


def is_led_by(cluster: Cluster, leader: int) -> bool:
    try:
        return cluster.leader(TOPIC) == leader
    except UnknownTopic:
        return False  # The broker that was asked has not heard of it yet.


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
@pytest.mark.parametrize("is_controller", [False, True], ids=["plain", "controller"])
def test_a_leader_is_killed_and_nothing_is_lost(is_controller: bool) -> None:
    with Cluster(brokers=3) as cluster:
        controller = cluster.controller()
        others = [node for node in cluster.node_ids if node != controller]
        victim = controller if is_controller else others[0]
        create_topic(cluster, victim)
        with Writing(cluster.bootstrap_servers) as writing:
            writing.until_it_goes_on(cluster)
            cluster.kill(victim)
            writing.until_it_goes_on(cluster)
            assert cluster.leader(TOPIC) != victim
            cluster.start_node(victim)
            cluster.until(lambda: is_whole(cluster), 60)
        check(cluster, writing)


@pytest.mark.timeout(180)
def test_a_coordinator_that_leads_is_killed_and_its_group_goes_on() -> None:
    with Cluster(brokers=3) as cluster:
        victim = coordinator(cluster)
        create_topic(cluster, victim)
        with Writing(cluster.bootstrap_servers) as writing:
            with Reading(cluster.bootstrap_servers) as reading:
                cluster.until(lambda: reading.committed > 0, 60)
                assert (cluster.leader(TOPIC), coordinator(cluster)) == (victim, victim)
                cluster.kill(victim)
                before = reading.committed
                writing.until_it_goes_on(cluster)
                cluster.until(lambda: reading.committed > before, 60)
                assert coordinator(cluster) != victim
            cluster.start_node(victim)
            cluster.until(lambda: is_whole(cluster), 60)
        check(cluster, writing)
        check_read(reading)
        (kept,) = Consumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP}
        ).committed([TopicPartition(TOPIC, 0)], timeout=30)
        assert kept.offset == reading.committed, "what was committed stays committed"


def check_read(reading: Reading) -> None:
    """In order; whoever begins again begins with something that it has seen, or the next."""
    seen = -1
    for value, before in zip(reading.values, [-1, *reading.values], strict=False):
        assert value <= seen + 1, "something was passed over"
        assert value == before + 1 or value <= seen, "out of order"
        seen = max(seen, value)
    assert seen + 1 >= reading.committed, "nothing was committed that was not read"


@pytest.mark.timeout(180)
def test_a_rolling_restart_loses_nothing(cluster: Cluster) -> None:
    with Writing(cluster.bootstrap_servers) as writing:
        for node_id in cluster.node_ids:
            writing.until_it_goes_on(cluster)
            cluster.restart(node_id)
            cluster.until(lambda: is_whole(cluster), 60)
        writing.until_it_goes_on(cluster)
    check(cluster, writing)
