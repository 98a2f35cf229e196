"""Three nodes move: what three of Apache Kafka's wrote, three of ours serve and extend, and back.

Topics of three replicas, configs, records of an idempotent producer, a group's offsets, and who is
in sync: all of it is there after each move, and all of it goes on.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import NewTopic

from ottla.client.admin import ResourceType
from ottla.client.blocking import Client
from ottla.client.errors import ClientError
from tests.conformance.apache_kafka import ApacheKafka, run_class
from tests.conformance.broker_process import Flavour
from tests.conformance.librdkafka import admin, consume, consumer
from tests.conformance.test_moving import eventually
from tests.process.quorum_nodes import FormattedOttla, Nodes

PARTITIONS = 3
RECORDS = 200
GROUP = "readers"
WAIT_SECONDS_MAX = 90
CONFIGS = {"retention.ms": "604800123", "segment.bytes": "1048576", "min.insync.replicas": "2"}


class Moving:
    """Three nodes, whoever runs them at the moment."""

    def __init__(self, directory: Path) -> None:
        self.nodes = Nodes(directory)
        for node in self.nodes.all.values():
            node.settings["group.initial.rebalance.delay.ms"] = "0"
            node.settings["offsets.topic.num.partitions"] = "3"
        self.authors: list[str] = []
        self.round = 0

    @property
    def bootstrap(self) -> str:
        return self.nodes.bootstrap

    def run_by(self, make: Callable[[], Flavour]) -> None:
        for node in self.nodes.all.values():
            node.flavour = make()
        self.nodes.start()
        self.until(lambda: self.is_whole())

    def stop(self) -> None:
        """One after the other; the last of Kafka's waits for ever for a quorum to let it go."""
        *others, last = self.nodes.all.values()
        for node in others:
            node.stop()
        if last.flavour.name == "kafka":
            last.kill()
        else:
            last.stop()

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            try:
                if holds():
                    return
            except ClientError:
                pass
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.2)

    def is_whole(self) -> bool:
        """Every replica of every topic is in sync, and three brokers are there."""
        with Client(self.bootstrap) as client:
            brokers = client.run(client.admin.describe_cluster()).brokers
            topics = client.run(client.admin.describe_topics())
        isrs = [sorted(part.isr_nodes) for topic in topics for part in topic.partitions]
        return len(brokers) == 3 and all(isr == [1, 2, 3] for isr in isrs)

    def write(self, author: str) -> None:
        """A topic of its own, and records to the one that all share."""
        names = [f"of-{author}-{self.round}"] if self.round else ["shared", f"of-{author}-0"]
        new = [NewTopic(name, PARTITIONS, 3, config=CONFIGS) for name in names]
        for future in admin(self.bootstrap).create_topics(new).values():
            future.result(30)
        self.until(lambda: self.is_whole())
        sender = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True})
        errors: list[object] = []
        for number in range(RECORDS):
            sender.produce(
                "shared",
                f"{author} {self.round} {number}".encode(),
                partition=number % PARTITIONS,
                on_delivery=lambda error, _: errors.append(error),
            )
        assert sender.flush(60) == 0
        assert errors == [None] * RECORDS
        self.authors.append(author)
        offset = 10 * (self.round + 1)
        reader = consumer(self.bootstrap, group_id=GROUP)
        eventually(
            lambda: reader.commit(offsets=[Position("shared", 1, offset)], asynchronous=False)
        )
        reader.close()
        self.round += 1

    def check(self) -> None:
        for index in range(PARTITIONS):
            expected = [
                f"{author} {turn} {number}".encode()
                for turn, author in enumerate(self.authors)
                for number in range(index, RECORDS, PARTITIONS)
            ]
            found = consume(self.bootstrap, "shared", len(expected), index)
            assert [message.value() for message in found] == expected
        with Client(self.bootstrap) as client:
            topics = {topic.name for topic in client.run(client.admin.describe_topics())}
            assert topics >= {f"of-{author}-{turn}" for turn, author in enumerate(self.authors)}
            for name in (n for n in topics if n and not n.startswith("__")):
                found_configs = client.run(client.admin.describe_configs(ResourceType.TOPIC, name))
                own = {c.name: c.value for c in found_configs if c.config_source == 1}
                assert own == CONFIGS
        reader = consumer(self.bootstrap, group_id=GROUP)

        def is_committed() -> None:
            (position,) = reader.committed([Position("shared", 1)], timeout=20)
            assert position.offset == 10 * self.round

        eventually(is_committed)
        reader.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", ["kafka", "ottla"])
def test_three_nodes_move_there_and_back(tmp_path: Path, first: str) -> None:
    kinds: dict[str, Callable[[], Flavour]] = {"kafka": ApacheKafka, "ottla": FormattedOttla}
    second = "ottla" if first == "kafka" else "kafka"
    moving = Moving(tmp_path)
    try:
        for author in (first, second, first):
            moving.run_by(kinds[author])
            if moving.authors:
                moving.check()
            moving.write(author)
            moving.check()
            moving.stop()
        dump_metadata(moving)
    finally:
        for node in moving.nodes.all.values():
            node.kill()


def dump_metadata(moving: Moving) -> None:
    """Kafka's tool reads what every node has of the metadata log, whoever wrote it."""
    for node in moving.nodes.all.values():
        directory = node.data_directory / "__cluster_metadata-0"
        files = ",".join(map(str, sorted(directory.glob("*.log"))))
        read = run_class(
            "org.apache.kafka.tools.DumpLogSegments",
            *("--cluster-metadata-decoder", "--files", files),
        )
        assert read.returncode == 0, read.stdout + read.stderr
        assert not re.search("error|invalid|corrupt", read.stdout, re.IGNORECASE)
        assert read.stdout.count('"type":"TOPIC_RECORD"') >= 5
