"""A real cluster for a test: a process for each node, free ports, gone without a trace.

    with Cluster(brokers=3) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders"))

Nodes are called by their ids, from 1 on. A node can be killed, stopped and started again, paused
as by a long collection of garbage, and cut off from everyone as by a broken switch.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import SystemRandom
from typing import TYPE_CHECKING, Self

from ottla.testing.broker import QUICK, SettingValue, as_text, key_of
from ottla.testing.managed import Managed
from ottla.testing.ports import HOST, Ports

if TYPE_CHECKING:
    from ottla.broker.node.local_cluster import LocalCluster
    from ottla.client.message import Message
    from ottla.testing.client import Client
    from ottla.testing.process import BrokerProcess

WAIT_SECONDS_MAX = 30.0
RACK = "machine"


class Cluster(Managed):
    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, SettingValue] | None = None,
        *,
        data: str | os.PathLike[str] | None = None,
        **named: SettingValue,
    ) -> None:
        """Settings go by Kafka's names, or by keyword: `num_partitions=3`."""
        given = {**(settings or {}), **{key_of(name): value for name, value in named.items()}}
        self._settings = {**QUICK, **{name: as_text(value) for name, value in given.items()}}
        self._count = brokers
        self._kept_data = None if data is None else os.fspath(data)
        self._ports = Ports(0)
        self._cluster: LocalCluster | None = None
        self._nodes: dict[int, BrokerProcess] = {}
        self._running: set[int] = set()
        self._silent: set[int] = set()  # Paused, or cut off.
        self.data = self._kept_data or ""

    # Its life.

    def start(self) -> Self:
        from ottla.broker.node.local_cluster import LocalCluster
        from ottla.env.disk import real_disk
        from ottla.testing.process import BrokerProcess

        self.data = self._kept_data or tempfile.mkdtemp(prefix="ottla-")
        stored = LocalCluster.stored(real_disk(), self.data, rack=RACK)
        if stored is None:
            self._ports = Ports(2 * self._count)
            ports = self._ports.numbers
            pairs = list(zip(ports[::2], ports[1::2], strict=True))
            made = LocalCluster.on_ports(self.data, pairs, host=HOST, rack=RACK)
        else:
            made = stored.grown_to(self._count)
        self._cluster = made
        _prepare(made, self._settings)
        for node in made.nodes:
            properties = made.properties_of(node, self._settings)
            self._nodes[node.id] = BrokerProcess(node.log_directory, properties, node.port)
        try:
            # None of them serves before enough of them are there to elect a controller.
            with ThreadPoolExecutor(self._count) as pool:
                list(pool.map(self.start_node, list(self._nodes)))
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End all nodes and remove their data, unless they are to be kept."""
        nodes, self._nodes = self._nodes, {}
        self._running.clear()
        for process in nodes.values():
            process.close()
        self._ports.close()
        if self._kept_data is None and self.data:
            shutil.rmtree(self.data, ignore_errors=True)

    # Where it is.

    @property
    def bootstrap_servers(self) -> str:
        """What clients are configured with: every node's `host:port`."""
        return self._made().bootstrap_servers

    @property
    def node_ids(self) -> list[int]:
        return list(self._nodes)

    def pid(self, node_id: int) -> int | None:
        return self._nodes[node_id].pid

    # What a test wants to have there, or to see.

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: Mapping[str, SettingValue] | None = None,
        *,
        replication_factor: int = -1,
    ) -> str:
        """Make a topic that every node knows from now on; gives back its name."""
        texts = {key: as_text(value) for key, value in (configs or {}).items()}
        self._client().create_topic(name, partitions, texts, replication_factor)
        for node_id in self._running - self._silent:
            self._wait_known(name, node_id)
        return name

    def produce(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        """Write records and wait until they are written, to all replicas in sync."""
        self._client().produce(topic, values, key=key, headers=(), partition=None)

    def records(self, topic: str) -> "list[Message]":
        """All records of a topic at this moment, by partition and offset."""
        return self._client().records(topic)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition now."""
        return self._client().partition(topic, partition).leader_id

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes whose replicas are in sync, as the cluster's metadata says."""
        return list(self._client().partition(topic, partition).isr_nodes)

    def controller(self) -> int:
        """The node whose controller is active."""
        return self._client().controller()

    def until(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS_MAX) -> None:
        """Wait for something to become so; TimeoutError if it does not."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"it did not come about within {seconds:g} s")
            time.sleep(0.02)

    # How it fails.

    def start_node(self, node_id: int) -> None:
        """Start it again on the same ports and data."""
        self._nodes[node_id].start()
        self._running.add(node_id)

    def stop(self, node_id: int) -> None:
        """Stop a node cleanly: it hands over what it leads first."""
        self._running.discard(node_id)
        self._nodes[node_id].stop(cleanly=True)

    def kill(self, node_id: int) -> None:
        """Stop a node as `kill -9` would."""
        self._running.discard(node_id)
        self._silent.discard(node_id)
        self._nodes[node_id].kill()

    def restart(self, node_id: int) -> None:
        """Stop a node cleanly, if it runs, and start it."""
        if node_id in self._running:
            self.stop(node_id)
        self.start_node(node_id)

    def pause(self, node_id: int) -> None:
        """Have a node do nothing at all until `resume`; its connections stay open."""
        self._silent.add(node_id)
        self._signal(node_id, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGCONT)
        self._silent.discard(node_id)

    def isolate(self, node_id: int) -> None:
        """Cut a node off from everyone, clients too, until `heal`; nobody is told."""
        self._silent.add(node_id)
        self._nodes[node_id].cut()

    def heal(self, node_id: int) -> None:
        self._nodes[node_id].heal()
        self._silent.discard(node_id)

    def _signal(self, node_id: int, number: int) -> None:
        pid = self._nodes[node_id].pid
        assert pid is not None, "the node is running"
        os.kill(pid, number)

    def _wait_known(self, topic: str, node_id: int) -> None:
        """The node that made it answers first; the others hear of it a moment later."""
        (node,) = (node for node in self._made().nodes if node.id == node_id)
        client = self._client(f"{HOST}:{node.port}")
        self.until(lambda: topic in client.topics())

    def _client(self, bootstrap_servers: str | None = None) -> "Client":
        from ottla.testing.client import Client

        return Client(bootstrap_servers or self.bootstrap_servers)

    def _made(self) -> "LocalCluster":
        if self._cluster is None:
            raise RuntimeError("the cluster is not running: use it in a with statement")
        return self._cluster


def _prepare(cluster: "LocalCluster", settings: Mapping[str, str]) -> None:
    from ottla.env.clock import RealClock
    from ottla.env.disk import real_disk

    cluster.prepare(real_disk(), settings, RealClock().wall(), SystemRandom().randbytes)
