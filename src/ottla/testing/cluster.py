"""A real cluster for a test: a process for each node, on free ports.

    with Cluster(brokers=3) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders"))

Node ids start at 1. A node can be killed, stopped and started again, paused, and isolated from all
others.
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
from ottla.testing.context_manager import Managed
from ottla.testing.fault_injection import NodeFaults
from ottla.testing.ports import HOST, Ports

if TYPE_CHECKING:
    from ottla.broker.node.local_cluster import LocalCluster
    from ottla.client.message import Message
    from ottla.testing.client import Client
    from ottla.testing.process import BrokerProcess
    from ottla.testing.request_log import SentRequest

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
        """Settings have Kafka's names, or are keywords: `num_partitions=3`."""
        given = {**(settings or {}), **{key_of(name): value for name, value in named.items()}}
        self._settings = {**QUICK, **{name: as_text(value) for name, value in given.items()}}
        self._count = brokers
        self._kept_data = None if data is None else os.fspath(data)
        self._ports = Ports(0)
        self._cluster: LocalCluster | None = None
        self._nodes: dict[int, BrokerProcess] = {}
        self._running: set[int] = set()
        self._silent: set[int] = set()  # Paused or isolated nodes.
        self.data = self._kept_data or ""

    # Lifecycle.

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
            # No node serves before a majority is there to elect a controller.
            with ThreadPoolExecutor(self._count) as pool:
                list(pool.map(self.start_node, list(self._nodes)))
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop all nodes and remove their data, unless `data` was given."""
        nodes, self._nodes = self._nodes, {}
        self._running.clear()
        for process in nodes.values():
            process.close()
        self._ports.close()
        if self._kept_data is None and self.data:
            shutil.rmtree(self.data, ignore_errors=True)

    # Addresses.

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every node, for clients."""
        return self._made().bootstrap_servers

    @property
    def node_ids(self) -> list[int]:
        return list(self._nodes)

    def pid(self, node_id: int) -> int | None:
        return self._nodes[node_id].pid

    # Topics and records.

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: Mapping[str, SettingValue] | None = None,
        *,
        replication_factor: int = -1,
    ) -> str:
        """Create a topic and wait until every node knows it; returns its name."""
        texts = {key: as_text(value) for key, value in (configs or {}).items()}
        self._client().create_topic(name, partitions, texts, replication_factor)
        for node_id in self._running - self._silent:
            self._wait_known(name, node_id)
        return name

    def produce(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        """Produce records and wait until all in-sync replicas have them."""
        self._client().produce(topic, values, key=key, headers=(), partition=None)

    def records(self, topic: str) -> "list[Message]":
        """All current records of a topic, by partition and offset."""
        return self._client().records(topic)

    def wait_for(self, topic: str, count: int, timeout: float = 10.0) -> "list[Message]":
        """All records of a topic, once it has at least `count`; TimeoutError after `timeout` s."""
        return self._client().wait_for(topic, count, timeout)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Committed offset of a group by (topic, partition)."""
        return self._client().committed(group)

    def lag(self, group: str) -> int:
        """Records that a group has not committed yet, in the partitions that it committed."""
        return self._client().lag(group)

    def requests(self, api: str) -> "list[SentRequest]":
        """The requests of an API that clients sent to the running nodes, node by node."""
        from ottla.testing.faults import api_key
        from ottla.testing.request_log import decode_sent

        nodes = [self._nodes[node_id] for node_id in sorted(self._running)]
        return [decode_sent(frame) for node in nodes for frame in node.requests(api_key(api))]

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition now."""
        return self._client().partition(topic, partition).leader_id

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes of the ISR, by the cluster's metadata."""
        return list(self._client().partition(topic, partition).isr_nodes)

    def controller(self) -> int:
        """The node whose controller is active."""
        return self._client().controller()

    def until(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS_MAX) -> None:
        """Wait until a condition holds; TimeoutError if it does not."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"it did not come about within {seconds:g} s")
            time.sleep(0.02)

    # Faults.

    def faults(self, node_id: int) -> NodeFaults:
        """Faults of requests to one node: `cluster.faults(1).fail("Produce", ...)`."""
        if node_id not in self._running:
            raise RuntimeError(f"node {node_id} is not running")
        return NodeFaults(self._nodes[node_id])

    def start_node(self, node_id: int) -> None:
        """Start it again on the same ports and data."""
        self._nodes[node_id].start()
        self._running.add(node_id)

    def stop(self, node_id: int) -> None:
        """Stop a node cleanly, with a controlled shutdown."""
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
        """Suspend a node until `resume`; its connections stay open."""
        self._silent.add(node_id)
        self._signal(node_id, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGCONT)
        self._silent.discard(node_id)

    def isolate(self, node_id: int) -> None:
        """Drop all traffic of a node, also with clients, until `heal`, without closing
        connections.
        """
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
        """The creating node answers first; the others learn of the topic a moment later."""
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
