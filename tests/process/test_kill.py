"""kill -9 under load: what was acknowledged is there once, in order, however often it happens.

OTTLA_CRASH_SECONDS says for how long (30 by default).
"""

import os
import random
import threading
import time

import pytest
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.broker_process import BrokerProcess, free_ports
from tests.conformance.librdkafka import Position as At
from tests.conformance.librdkafka import consumer, create, take
from tests.process.conftest import NewBroker
from tests.process.lossy_proxy import LossyProxy

SECONDS = float(os.environ.get("OTTLA_CRASH_SECONDS", "30"))
PARTITIONS = 3
UNANSWERED_MAX = 3000  # More than a pipeline of five batches a partition.


class Load:
    """An idempotent producer that numbers its records by partition and remembers each answer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.sent = [0] * PARTITIONS
        self.offsets: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.errors: list[object] = []
        self.unanswered = 0  # In the end.
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "batch.num.messages": 50,
                "compression.type": "lz4",
                "message.timeout.ms": 120_000,
                "socket.timeout.ms": 20_000,  # A connection that hangs is given up in time.
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "socket.connection.setup.timeout.ms": 2000,
                "log_level": 0,
            }
        )

    def run(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            for partition in range(PARTITIONS):
                number = self.sent[partition]
                self._producer.produce(
                    self.topic,
                    b"%d %s" % (number, b"." * 200),
                    partition=partition,
                    on_delivery=self._answered,
                )
                self.sent[partition] += 1
            self._producer.poll(0)
            while len(self._producer) > UNANSWERED_MAX and time.monotonic() < deadline:
                self._producer.poll(0.01)
            time.sleep(0.001)

    def finish(self) -> None:
        self.unanswered = self._producer.flush(100)

    def _answered(self, error: object, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        number = int(message.value().split()[0])
        self.offsets[message.partition()][number] = message.offset()


def read_all(bootstrap: str, topic: str) -> list[dict[int, int]]:
    """By partition: the number of each record and its offset. A number seen twice is a failure."""
    reader = consumer(bootstrap)
    found: list[dict[int, int]] = []
    for partition in range(PARTITIONS):
        first, end = reader.get_watermark_offsets(At(topic, partition), timeout=20)
        reader.assign([At(topic, partition, first)])
        numbers: dict[int, int] = {}
        for message in take(reader, end - first):
            number = int(message.value().split()[0])
            assert number not in numbers, f"record {number} of partition {partition} is twice there"
            numbers[number] = message.offset()
        found.append(numbers)
    reader.close()
    return found


class Topics:
    """Makes and deletes topics while brokers die; what was confirmed must hold."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._number = 0
        self.existing: set[str] = set()
        self.deleted: set[str] = set()

    def run(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            self._number += 1
            name = f"made-{self._number}"
            if self._done(self._admin.create_topics([NewTopic(name, 1, 1)])[name]):
                self.existing.add(name)
            if self._number % 3 == 0 and self.existing:
                name = min(self.existing)
                self.existing.discard(name)  # Neither is sure until it is confirmed.
                if self._done(self._admin.delete_topics([name])[name]):
                    self.deleted.add(name)
            time.sleep(0.05)

    def _done(self, future: object) -> bool:
        try:
            future.result(2)  # type: ignore[attr-defined]
        except (KafkaException, TimeoutError):
            return False
        return True

    def check(self) -> None:
        listed = set(self._admin.list_topics(timeout=20).topics)
        assert self.existing <= listed, "a topic whose creation was confirmed is gone"
        assert not self.deleted & listed, "a topic whose deletion was confirmed is back"


def crash_until(broker: BrokerProcess, deadline: float, chance: random.Random) -> int:
    """Kill and start again at random moments, while it recovers too; how often."""
    crashes = 0
    while time.monotonic() < deadline:
        time.sleep(chance.choice((0.05, 0.3, 0.8, 1.5)))
        broker.kill()
        crashes += 1
        broker.start(wait=chance.random() < 0.8)
    broker.wait_ready()
    return crashes


def check_answered(broker: BrokerProcess, load: Load, crashes: list[int], seed: int) -> None:
    """The killer ends early if the broker does not start, and then nobody answers."""
    assert crashes, f"the broker did not come back (seed {seed}):\n{broker.log_tail()}"
    assert load.unanswered == 0, f"never answered (seed {seed}):\n{broker.log_tail()}"


def check(broker: BrokerProcess, load: Load, seed: int) -> list[dict[int, int]]:
    assert load.errors == [], f"seed {seed}"
    found = read_all(broker.bootstrap, load.topic)
    for partition in range(PARTITIONS):
        assert found[partition] == load.offsets[partition], f"partition {partition}, seed {seed}"
        assert list(found[partition]) == list(range(load.sent[partition])), "order"
    return found


@pytest.mark.timeout(int(SECONDS) + 120)
def test_nothing_acknowledged_is_lost_or_doubled_or_moved_by_kills(new_broker: NewBroker) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    broker = new_broker(log_roll_ms="1000", offsets_topic_num_partitions="1").start()
    create(broker.bootstrap, "load", PARTITIONS, segment_bytes="1048576", segment_ms="1000")
    load, topics = Load(broker.bootstrap, "load"), Topics(broker.bootstrap)
    deadline = time.monotonic() + SECONDS
    crashes: list[int] = []
    killer = threading.Thread(
        target=lambda: crashes.append(crash_until(broker, deadline, random.Random(seed)))
    )
    admin = threading.Thread(target=topics.run, args=(deadline,))
    killer.start()
    admin.start()
    load.run(deadline)
    load.finish()
    killer.join()
    admin.join()

    check_answered(broker, load, crashes, seed)
    found = check(broker, load, seed)
    topics.check()
    assert crashes[0] >= SECONDS / 4, f"only {crashes[0]} crashes in {SECONDS} s"
    broker.restart()
    assert read_all(broker.bootstrap, "load") == found


@pytest.mark.timeout(int(SECONDS) + 120)
def test_a_record_that_is_sent_again_after_a_lost_answer_is_not_doubled(
    new_broker: NewBroker,
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    (port,) = free_ports(1)
    broker = new_broker(advertised_listeners=f"PLAINTEXT://127.0.0.1:{port}").start()
    proxy = LossyProxy(port, broker.port, random.Random(seed)).start()
    create(broker.bootstrap, "lossy", PARTITIONS)
    load = Load(f"127.0.0.1:{port}", "lossy")
    deadline = time.monotonic() + SECONDS / 3
    chance = random.Random(seed)
    crashes: list[int] = []
    killer = threading.Thread(target=lambda: crashes.append(crash_until(broker, deadline, chance)))
    killer.start()
    load.run(deadline)
    while proxy.cuts < SECONDS / 6 and time.monotonic() < deadline + SECONDS:
        load.run(time.monotonic() + 1)  # The machine is slow.
    proxy.calm()
    load.finish()
    killer.join()
    proxy.stop()
    check_answered(broker, load, crashes, seed)
    assert proxy.cuts >= SECONDS / 6, f"only {proxy.cuts} cuts"
    broker.settings["advertised.listeners"] = f"PLAINTEXT://{broker.bootstrap}"
    broker.restart()
    check(broker, load, seed)
