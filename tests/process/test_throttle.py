"""A throttled move between real nodes runs at about its rate, and holds up nobody in sync."""

import time

import pytest
from confluent_kafka import Producer

from ottla.client.admin import Operation, ResourceType
from ottla.client.blocking import Client
from ottla.protocol.messages import alter_partition_reassignments as wire
from ottla.testing import Cluster

TOPIC = "orders"
RATE = 2_000_000
SIZE = 12_000_000
RECORD = bytes(10_000)


def configure(client: Client, kind: ResourceType, name: str, **configs: str) -> None:
    changes = [
        (Operation.SET, key.replace("_", "."), value) for key, value in sorted(configs.items())
    ]
    client.run(client.admin.alter_configs(kind, name, changes))


async def reassign(client: Client, nodes: list[int]) -> None:
    topic = wire.ReassignableTopic(TOPIC, [wire.ReassignablePartition(0, nodes)])
    connection = await client.cluster.controller()
    answer = await connection.ask(wire.Request(topics=[topic]), wire.Response, timeout_ms=10_000)
    assert answer.responses[0].partitions[0].error_code == 0, answer


def write(cluster: Cluster, size: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for _ in range(size // len(RECORD)):
        producer.produce(TOPIC, RECORD)
        producer.poll(0)
    assert producer.flush(60) == 0


def round_trip(producer: Producer) -> float:
    """How long one acks=all record takes."""
    errors = []
    began = time.monotonic()
    producer.produce(TOPIC, b"now", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None]
    return time.monotonic() - began


@pytest.mark.timeout(180)
@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_move_runs_at_its_rate_and_what_is_in_sync_at_its_own(side: str) -> None:
    window = {"replication.quota.window.num": 4}
    made = Cluster(brokers=3, settings=window)
    with made as cluster, Client(cluster.bootstrap_servers) as client:
        cluster.create_topic(TOPIC, replication_factor=2)
        for node in cluster.node_ids:
            rate = {f"{side}_replication_throttled_rate": str(RATE)}
            configure(client, ResourceType.BROKER, str(node), **rate)
        configure(
            client, ResourceType.TOPIC, TOPIC, **{f"{side}_replication_throttled_replicas": "*"}
        )
        began = time.monotonic()
        write(cluster, SIZE)  # To two replicas in sync, which the throttle must not concern.
        wrote_seconds = time.monotonic() - began
        assert wrote_seconds < SIZE / RATE / 2
        time.sleep(4)  # What went to them counts too, for as long as the window is.

        known = cluster.isr(TOPIC)
        (newcomer,) = set(cluster.node_ids) - set(known)
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 0}
        )
        round_trip(producer)
        began = time.monotonic()
        client.run(reassign(client, [*known, newcomer]))
        trips = []
        while newcomer not in cluster.isr(TOPIC):
            trips.append(round_trip(producer))
            assert time.monotonic() - began < 60
        took_seconds = time.monotonic() - began
        assert 0.7 < SIZE / took_seconds / RATE < 1.4
        assert sorted(trips)[len(trips) * 9 // 10] < 0.5
