"""Clusters that are compared: three nodes of a kind on this machine, each broker and controller.

Both kinds get the same settings: three replicas, of which two must be in sync. All else is default.
A node can be killed and started again.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.peers import CLUSTER_ID, Kafka, Ottla, Peer
from benchmarks.processes import brokers_seen
from benchmarks.results import MB
from ottla.testing.client import Client

NODES = 3
SECONDS_MAX = 60
POLL_SECONDS = 0.02


class OttlaNode(Ottla):
    """One of several voters is formatted by a tool, as Kafka's is."""

    def start(self) -> float:
        if not (self.data / "meta.properties").exists():
            self.format()
        return super().start()

    def format(self) -> None:
        properties = self.directory / "server.properties"
        command = [sys.executable, "-m", "ottla.cli.main", "format", "-t", CLUSTER_ID]
        subprocess.run([*command, "-c", str(properties)], check=True, capture_output=True)


class Cluster:
    """Satisfies `Target`: load goes to all nodes, and CPU is that of all of them."""

    def __init__(self, kind: type[Peer], directory: Path, port: int) -> None:
        self.name = kind.name
        self.port = port
        ports = [port + 2 * index for index in range(NODES)]
        voters = ",".join(f"{n}@127.0.0.1:{at + 1}" for n, at in enumerate(ports, 1))
        more = {
            "controller.quorum.voters": voters,
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "group.initial.rebalance.delay.ms": "0",
        }
        if kind is Kafka:
            for name in ("transaction.state.log", "share.coordinator.state.topic"):
                more |= {f"{name}.replication.factor": "3", f"{name}.min.isr": "2"}
        made = OttlaNode if kind is Ottla else kind
        self.nodes = {
            number: made(directory / f"node-{number}", at, more | {"node.id": str(number)})
            for number, at in enumerate(ports, 1)
        }
        self.bootstrap = ",".join(node.bootstrap for node in self.nodes.values())
        self._admin: AdminClient | None = None

    @property
    def pid(self) -> int:
        return self.nodes[1].pid

    @property
    def pids(self) -> str:
        return ",".join(str(node.pid) for node in self.nodes.values())

    def start(self) -> float:
        """The seconds until every node knows every other one; formatting is left out."""
        for node in self.nodes.values():
            if isinstance(node, OttlaNode | Kafka):
                node.format()
        began = time.perf_counter()
        with ThreadPoolExecutor(NODES) as pool:
            list(pool.map(Peer.start, self.nodes.values()))
        until(lambda: all(brokers_seen(node.port) == NODES for node in self.nodes.values()))
        return time.perf_counter() - began

    def stop(self) -> None:
        self._admin = None
        with ThreadPoolExecutor(NODES) as pool:
            list(pool.map(Peer.stop, self.nodes.values()))

    def resident_mb(self) -> float:
        """Of the largest node."""
        return max(node.process.resident_bytes() for node in self.nodes.values()) / MB

    def create_topic(self, name: str, partitions: int, first: int = 1) -> None:
        """Leaders go round from node `first` on; waits until all replicas are in sync."""
        ids = list(self.nodes)
        placed = [
            [ids[(first - 1 + index + place) % NODES] for place in range(NODES)]
            for index in range(partitions)
        ]
        topic = NewTopic(name, partitions, replica_assignment=placed)
        self._clients().create_topics([topic])[name].result(SECONDS_MAX)
        until(lambda: self.is_whole(name))

    def delete_topic(self, name: str) -> None:
        """And wait until its files are gone: the next round shall have their pages."""
        self._clients().delete_topics([name])[name].result(SECONDS_MAX)
        until(lambda: not any(n for d in self.nodes.values() for n in d.data.glob(f"{name}[-.]*")))

    def is_whole(self, topic: str) -> bool:
        """Whether every partition of it is led, and all its replicas are in sync."""
        try:
            known = self._clients().list_topics(topic, timeout=5).topics[topic]
        except KafkaException:
            return False
        parts = known.partitions.values()
        return bool(parts) and all(len(p.isrs) == NODES and p.leader > 0 for p in parts)

    def controller(self) -> int:
        """The node whose controller is active."""
        return Client(self.bootstrap).controller()

    def coordinator(self, group: str) -> int:
        """The node that coordinates a group, whose topic may have to be made first."""
        found: list[int] = []

        def is_known() -> bool:
            described = self._clients().describe_consumer_groups([group])[group]
            with suppress(KafkaException):
                found.append(described.result(SECONDS_MAX).coordinator.id)
            return bool(found)

        until(is_known)
        return found[0]

    def kill(self, node: int) -> None:
        self.nodes[node].process.stop(signal.SIGKILL)

    def _clients(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return self._admin


def until(condition: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """Wait for something to become so."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"it did not come about within {seconds:g} s")
        time.sleep(POLL_SECONDS)
