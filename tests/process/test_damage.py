"""Bytes of a sealed segment change while its broker is down: what others have is fetched anew."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker, Cluster

TOPIC = "orders"
RECORDS = 3000
SEGMENT_BYTES = 1 << 20  # The least that Kafka allows.
SOON = {"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 1000}


def make_topic(servers: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    config = {"segment.bytes": str(SEGMENT_BYTES)}
    admin.create_topics([NewTopic(TOPIC, 1, replicas, config=config)])[TOPIC].result()


def fill(servers: str, count: int = RECORDS) -> None:
    failures: list[object] = []
    small = {"batch.num.messages": 20}  # So that a byte is one of many batches.
    producer = Producer({"bootstrap.servers": servers, "acks": "all", **small})
    for number in range(count):
        producer.produce(
            TOPIC,
            b"%06d" % number + b"." * 1024,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failures


def segments(directory: Path) -> dict[str, bytes]:
    logs = list(directory.rglob(f"{TOPIC}-0"))
    if not logs:
        return {}  # It is being made again.
    (log,) = logs
    return {path.name: path.read_bytes() for path in sorted(log.glob("*.log"))}


def damage(directory: Path) -> Path:
    """Change a byte in the middle of the first, sealed segment."""
    (log,) = directory.rglob(f"{TOPIC}-0")
    sealed = sorted(log.glob("*.log"))[0]
    content = bytearray(sealed.read_bytes())
    content[len(content) // 2] ^= 1
    sealed.write_bytes(content)
    return sealed


@pytest.mark.timeout(180)
def test_a_damaged_replica_is_in_sync_again_with_equal_bytes(tmp_path: Path) -> None:
    with Cluster(brokers=3, settings=SOON, data=tmp_path) as cluster:
        make_topic(cluster.bootstrap_servers, 3)
        fill(cluster.bootstrap_servers)
        node = cluster.leader(TOPIC)
        homes = {number: tmp_path / f"node-{number}" for number in cluster.node_ids}
        others = [homes[number] for number in cluster.node_ids if number != node]
        cluster.until(lambda: len({str(segments(home)) for home in homes.values()}) == 1)
        cluster.stop(node)
        damage(homes[node])
        assert segments(homes[node]) != segments(others[0])
        cluster.start_node(node)
        cluster.until(
            lambda: len(cluster.isr(TOPIC)) == 3 and segments(homes[node]) == segments(others[0]),
            60,
        )
        assert segments(others[0]) == segments(others[1])
        assert len(cluster.records(TOPIC)) == RECORDS
        fill(cluster.bootstrap_servers, 10)
        assert len(cluster.records(TOPIC)) == RECORDS + 10


@pytest.mark.timeout(120)
def test_the_only_copy_is_named_and_what_is_readable_is_served(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Broker(SOON, process=True, data=tmp_path) as broker:
        make_topic(broker.bootstrap_servers, 1)
        fill(broker.bootstrap_servers)
        broker.stop()
        path = damage(tmp_path)
        before = segments(tmp_path)
        broker.start()
        found = ""
        deadline = time.monotonic() + 30
        while f"{TOPIC}-0 has no other copy: {path} is damaged at byte" not in found:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
            found += capfd.readouterr().err
        fill(broker.bootstrap_servers, 10)
        after = segments(tmp_path)
        assert all(after[name].startswith(content) for name, content in before.items())
        second = int(sorted(before)[1].removesuffix(".log"))
        assert read_from(broker.bootstrap_servers, second) == RECORDS + 10 - second
        assert read_from(broker.bootstrap_servers, 0) > RECORDS // 10


def read_from(servers: str, offset: int) -> int:
    """How many records a consumer that looks at checksums reads before it ends, or fails."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "check.crcs": True,
            "enable.partition.eof": True,
            "max.partition.fetch.bytes": 100_000,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, offset)])
    count = 0
    try:
        while (message := consumer.poll(30)) is not None and message.error() is None:
            count += 1
    finally:
        consumer.close()
    return count
