"""Several real nodes with a real quorum, in virtual time: network and disks are simulated."""

# ruff: noqa: ANN401, ASYNC110  Messages are of any class; time is virtual, so polling is free.

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from ottla.broker.node.auto_format import format_for
from ottla.broker.node.broker import Broker
from ottla.broker.node.directory_format import format_directories
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.env.environment import Environment
from ottla.env.workers import InlineWorkers
from ottla.model.types import NodeId
from ottla.protocol.messages import create_topics
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.disk import SimulatedDisk
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.trace import Trace

CLUSTER = "aZSxcrjtRrO_dWhnyP37Bw"
WAIT_SECONDS_MAX = 60


class Node:
    def __init__(self, cluster: "Cluster", number: int, changes: dict[str, str]) -> None:
        self.cluster = cluster
        self.number = number
        self.host = f"n{number}"
        self.disk = SimulatedDisk(Random(number), capacity_bytes=1 << 40)
        properties = zero_configuration("/data", host=self.host, port=9092)
        listeners = f"PLAINTEXT://{self.host}:9092,CONTROLLER://{self.host}:9093"
        properties |= {"ottla.disk.reserve.bytes": "4096", "node.id": str(number)}
        properties |= {"listeners": listeners, "controller.quorum.voters": cluster.voters}
        for key, value in changes.items():
            properties[key] = value
        properties = {key: value for key, value in properties.items() if value}
        self.settings = Settings.load(properties, host_name=lambda: self.host)
        wanted = format_for(self.settings, CLUSTER)
        format_directories(self.disk, wanted, cluster.clock.wall(), cluster.random.randbytes)
        self.broker: Broker
        self.starting: asyncio.Task[None] | None = None
        self.is_up = False
        self.starts = 0

    def begin(self) -> None:
        """Start, without waiting for it."""
        self.starts += 1
        self.disk.kill()
        env = Environment(
            self.cluster.clock,
            self.disk,
            self.cluster.network.host(self.host),
            InlineWorkers(),
            Random(f"{self.host}/{self.starts}"),
        )
        self.broker = Broker(self.settings, env)
        self.is_up = True
        self.starting = self.cluster.loop.create_task(self.broker.start())

    def kill(self) -> None:
        """Gone at once: connections are reset, and nothing listens any more."""
        self.is_up = False
        self.cluster.run(self.broker.abort())
        self.cluster.network.reset_some(self.host, 1.0)

    def stop(self) -> None:
        self.is_up = False
        self.cluster.run(self.broker.stop())

    @property
    def is_serving(self) -> bool:
        return self.starting is not None and self.starting.done()

    def ask(self, request: Any) -> Any:
        return self.cluster.run(self.broker.quorum.requests.submit(request))

    def create(self, name: str, replicas: int = 1) -> Any:
        topic = create_topics.CreatableTopic(name, 1, replicas)
        return self.ask(create_topics.Request([topic])).topics[0].error_code


class Cluster:
    def __init__(self, count: int, changes: dict[int, dict[str, str]]) -> None:
        self.loop = VirtualLoop()
        self.errors: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self.clock = VirtualClock(self.loop)
        self.random = Random(1)
        self.network = SimulatedNetwork(self.loop, Random(2), Trace(lambda: self.loop.now_ns))
        controllers = [
            n
            for n in range(1, count + 1)
            if "controller" in changes.get(n, {}).get("process.roles", "controller")
        ]
        self.voters = ",".join(f"{number}@n{number}:9093" for number in controllers)
        self.nodes = {n: Node(self, n, changes.get(n, {})) for n in range(1, count + 1)}

    def start(self, *numbers: int) -> None:
        for number in numbers or self.nodes:
            self.nodes[number].begin()
        self.until(lambda: all(node.is_serving for node in self.nodes.values() if node.is_up))
        for node in self.nodes.values():
            if node.starting is not None and node.is_up:
                node.starting.result()

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def pass_ms(self, ms: int) -> None:
        self.run(asyncio.sleep(ms / 1000))

    def until(self, holds: Callable[[], bool], step_ms: float = 1) -> float:
        """Returns how many virtual milliseconds it took."""

        async def wait() -> None:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                while not holds():
                    await asyncio.sleep(step_ms / 1000)

        before = self.clock.monotonic()
        self.run(wait())
        return self.clock.monotonic() - before

    @property
    def leaders(self) -> list[Node]:
        return [n for n in self.nodes.values() if n.is_up and n.broker.quorum.is_leader]

    @property
    def leader(self) -> Node:
        (leader,) = self.leaders
        return leader

    @property
    def followers(self) -> list[Node]:
        return [n for n in self.nodes.values() if n.is_up and not n.broker.quorum.is_leader]

    def is_fenced(self, number: int) -> bool:
        brokers = self.leader.broker.image.brokers
        return NodeId(number) in brokers and brokers[NodeId(number)].is_fenced

    def end(self) -> None:
        for node in self.nodes.values():
            if node.is_up:
                self.run(node.broker.abort())
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run(asyncio.sleep(0))
        self.loop.close()
        if self.errors:
            pytest.fail(f"errors that nobody caught: {self.errors}")


@contextlib.contextmanager
def cluster_of(count: int, **changes: dict[str, str]) -> Iterator[Cluster]:
    """`changes` are settings of single nodes: n2={...}."""
    cluster = Cluster(count, {int(name[1:]): these for name, these in changes.items()})
    try:
        yield cluster
    finally:
        cluster.end()
