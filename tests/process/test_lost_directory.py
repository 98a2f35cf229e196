"""A log directory of one of three real nodes fails: others lead, and another disk takes over."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client.blocking import Client
from ottla.model.types import NodeId
from ottla.protocol.messages.metadata import MetadataResponsePartition
from tests.conformance.broker_process import Ottla
from tests.process.disks import fail, needs_root
from tests.process.quorum_nodes import Nodes

TOPIC = "orders"
PARTITIONS = 6
RECORDS = 2000
WAIT_SECONDS_MAX = 60


@pytest.fixture
def nodes(tmp_path: Path, doomed_disk: Path) -> Iterator[Nodes]:
    """Node 3 keeps its metadata log on a good disk, and replicas there and on a doomed one."""
    made = Nodes(tmp_path)
    for number, node in made.all.items():
        second = doomed_disk / "logs" if number == 3 else tmp_path / f"second{number}"
        node.settings["log.dirs"] = f"{node.data_directory},{second}"
        node.settings["metadata.log.dir"] = str(node.data_directory)
        node.settings["min.insync.replicas"] = "2"
    try:
        made.start()
        yield made
    finally:
        for node in made.all.values():
            node.kill()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)


def partitions(nodes: Nodes) -> list[MetadataResponsePartition]:
    with Client(nodes.all[1].bootstrap) as client:
        (topic,) = client.run(client.admin.describe_topics([TOPIC]))
        return sorted(topic.partitions, key=lambda item: item.partition_index)


def sizes_on(nodes: Nodes, number: int) -> dict[str, int]:
    """How many partitions each log directory of a node holds; -1 where it failed."""
    with Client(nodes.all[1].bootstrap) as client:
        found = client.run(client.admin.log_dirs(NodeId(number)))
        return {
            item.log_dir: -1 if item.error_code else sum(len(t.partitions) for t in item.topics)
            for item in found
        }


def produce(nodes: Nodes, count: int) -> None:
    producer = Producer({"bootstrap.servers": nodes.bootstrap, "acks": "all"})
    errors = []
    for number in range(count):
        producer.produce(
            TOPIC,
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(WAIT_SECONDS_MAX) == 0
    assert errors == []


def log_bytes(nodes: Nodes, number: int, index: int) -> bytes:
    """All batches of a partition, from whichever disk of a node has them."""
    for directory in nodes.all[number].settings["log.dirs"].split(","):
        path = Path(directory) / f"{TOPIC}-{index}"
        if "doomed" not in directory and path.exists():
            return b"".join(file.read_bytes() for file in sorted(path.glob("*.log")))
    return b""


def is_whole(nodes: Nodes) -> bool:
    return all(sorted(item.isr_nodes) == [1, 2, 3] for item in partitions(nodes))


@needs_root
@pytest.mark.timeout(240)
def test_leaders_move_away_and_replicas_to_a_healthy_disk(nodes: Nodes, doomed_disk: Path) -> None:
    doomed, healthy = str(doomed_disk / "logs"), str(nodes.all[3].data_directory)
    with Client(nodes.all[1].bootstrap) as client:
        client.run(client.admin.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3))
    produce(nodes, RECORDS)
    until(lambda: is_whole(nodes))
    assert sizes_on(nodes, 3)[doomed] > 0

    fail(doomed_disk)
    produce(nodes, RECORDS)
    until(lambda: sizes_on(nodes, 3) == {doomed: -1, healthy: PARTITIONS})
    until(lambda: is_whole(nodes))
    assert all(item.offline_replicas == [] for item in partitions(nodes))

    nodes.all[3].flavour = Ottla()  # It is formatted, and the directory cannot even be opened.
    nodes.all[3].restart()
    until(lambda: is_whole(nodes))
    for node in nodes.all.values():
        node.stop()
    for index in range(PARTITIONS):
        copies = {number: log_bytes(nodes, number, index) for number in nodes.all}
        assert copies[1]
        assert copies[1] == copies[2] == copies[3]
