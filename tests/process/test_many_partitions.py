"""Thousands of partitions in one request: everyone else is served, and nobody is taken for dead."""

import socket
import struct
import threading
import time
from itertools import pairwise

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.admin import Admin
from ottla.client.session import run
from ottla.testing import Broker, Cluster
from ottla.testing.client import SETTINGS

PARTITIONS = 5_000
TOPIC = "wide"
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
# To make them takes a broker seconds, and in one piece nobody would be answered in that time. What
# is still done in one piece is to decide and to read 5,000 records: a fraction of a second.
STALL_SECONDS_ALLOWED = 1.0
# To decide them is a part of a second of CPU in one turn. Where a dozen others want the core, that
# may be more than the two seconds after which a voter asks for another leader.
PATIENT = {"controller.quorum.fetch.timeout.ms": 8_000}
STALL_PART_MAX = 1 / 3  # On a machine that is so busy that all takes longer.


class Probe:
    """Asks a broker for its versions, again and again, on a connection of its own."""

    def __init__(self, address: str) -> None:
        self.answered_at: list[float] = []
        self._address = address
        self._is_stopping = False
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Probe":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping = True
        self._thread.join()

    def _ask(self) -> None:
        host, port = self._address.split(":")
        with socket.create_connection((host, int(port))) as connection:
            while not self._is_stopping:
                connection.sendall(API_VERSIONS)
                (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
                connection.recv(size, socket.MSG_WAITALL)
                self.answered_at.append(time.monotonic())
                time.sleep(0.002)

    def longest_stall(self) -> float:
        return max(after - before for before, after in pairwise(self.answered_at))


# To remove 45,000 files takes a busy disk minutes.
@pytest.fixture(params=["one broker", pytest.param("three brokers", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest) -> Broker | Cluster:
    if request.param == "one broker":
        return Broker(process=True)
    return Cluster(brokers=3, settings=PATIENT)


@pytest.mark.timeout(400)
def test_others_are_served_while_thousands_of_partitions_are_made(
    cluster: Broker | Cluster,
) -> None:
    with cluster:
        servers = cluster.bootstrap_servers
        addresses = servers.split(",")
        epoch = leader_epoch(servers)
        probes = [Probe(address) for address in addresses]
        admin = AdminClient({"bootstrap.servers": servers})
        for probe in probes:
            probe.__enter__()
        try:
            started_at = time.monotonic()
            wanted = NewTopic(TOPIC, PARTITIONS, len(addresses))
            admin.create_topics([wanted], request_timeout=60)[TOPIC].result()
            took = time.monotonic() - started_at
            write_to_some(servers)
        finally:
            for probe in probes:
                probe.__exit__()
        stalls = [probe.longest_stall() for probe in probes]
        assert max(stalls) < max(STALL_SECONDS_ALLOWED, took * STALL_PART_MAX), (stalls, took)
        assert leader_epoch(servers) == epoch, "no controller lost its place"
        described = admin.list_topics(TOPIC, timeout=60).topics[TOPIC].partitions
        assert len(described) == PARTITIONS
        assert all(each.leader > 0 for each in described.values())


def write_to_some(servers: str) -> None:
    """They take a record: those that wait for their turn after a few tries."""
    failures: list[object] = []
    producer = Producer(
        {"bootstrap.servers": servers, "acks": "all", "linger.ms": 50, "message.timeout.ms": 90_000}
    )
    for index in (*range(0, PARTITIONS, 50), PARTITIONS - 1):
        producer.produce(
            TOPIC,
            b"x",
            partition=index,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(90) == 0
    assert not failures


def leader_epoch(servers: str) -> int:
    return run(lambda cluster: Admin(cluster).quorum(), servers, SETTINGS).leader_epoch
