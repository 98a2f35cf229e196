"""Several real brokers in virtual time, on one network, with one controller for all of them.

The controller is the real one; its log is a list that every broker reads a little later. So tests
of replication need no quorum, and decide themselves when a broker is noticed to be gone.
"""

# ruff: noqa: ANN401  Messages are of any class.

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from ottla.broker.machines.answer import Answer
from ottla.broker.node import broker as server
from ottla.broker.node.auto_format import prepare_up
from ottla.broker.node.broker import Broker
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.client.connection import Connection
from ottla.client.dialer import Dialer
from ottla.env.environment import Environment
from ottla.env.network import Address
from ottla.env.workers import InlineWorkers
from ottla.metadata.decisions.brokers import Died
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.decisions.controller import Controller
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.features import METADATA_VERSION, METADATA_VERSION_MAX
from ottla.metadata.image.ids import new_uuid
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import create_topics, fetch, produce
from ottla.protocol.metadata_records import FeatureLevelRecord
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.disk import SimulatedDisk
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.trace import Trace

CLUSTER = "aZSxcrjtRrO_dWhnyP37Bw"
PORT = 9092
CONTROLLER_NODE = NodeId(9)


class SharedLog:
    """The controller and what it wrote."""

    def __init__(self, loop: VirtualLoop, clock: VirtualClock, features: dict[str, int]) -> None:
        random = Random(7)
        self.loop = loop
        self.clock = clock
        self.random = random
        self.records: list[Any] = []
        self.readers: list[SharedQuorum] = []
        self.controller = Controller(
            CLUSTER,
            ControllerSettings(CONTROLLER_NODE),
            below=random.randrange,
            new_uuid=lambda: new_uuid(random.randbytes),
        )
        levels = {METADATA_VERSION: METADATA_VERSION_MAX, **features}
        self.write([FeatureLevelRecord(name, level) for name, level in levels.items()])

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def decide(self, request: Any) -> Any:
        decision = self.controller.decide(1, request, self.clock.monotonic())
        self.write(decision.records)
        return decision.replies[0][1]

    def tick(self, now: Monotonic) -> None:
        self.write(self.controller.tick(now).records)

    def write(self, records: list[Any]) -> None:
        for record in records:
            self.controller.apply(len(self.records), record)
            self.records.append(record)
        if records:
            for reader in self.readers:
                delay_ms = self.random.randrange(1, 5)
                self.loop.call_later(delay_ms / 1000, reader.read)


class SharedQuorum:
    """Stands where a broker has its quorum driver."""

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self.image = ClusterImage(CLUSTER)
        self._subscribers: list[Callable[[ImageDelta], None]] = []
        self._waiting: list[tuple[int, Callable[[Any], None], Any]] = []
        self.is_cut_off = False  # From the controller.
        self.is_leader = False  # The controller is elsewhere.
        self.voter_count = 1
        self.is_alone = True  # Nobody has to be heard, or to be told.
        self.known_at: Monotonic | None = None  # When it read all that there was.
        self.on_began: Callable[[], None] | None = None
        self.requests = self.commits = self
        self.heartbeats = self
        self.moved = asyncio.Event()  # Never: there is one controller.
        self.kraft_version = 0

    def open(self) -> None:
        self._log.readers.append(self)
        self.read()

    def read(self) -> None:
        if self.is_cut_off:
            return
        for offset in range(self.image.offset + 1, len(self._log.records)):
            self.image.apply(offset, self._log.records[offset])
        self.known_at = self._log.clock.monotonic()
        delta = self.image.take_delta()
        for subscriber in self._subscribers:
            subscriber(delta)
        ready = [w for w in self._waiting if w[0] <= self.image.offset]
        self._waiting = [w for w in self._waiting if w not in ready]
        for _, on_reply, reply in ready:
            on_reply(reply)

    def subscribe(self, subscriber: Callable[[ImageDelta], None]) -> None:
        self._subscribers.append(subscriber)

    def decide(self, request: Any) -> Answer[Any]:
        answer: Answer[Any] = Answer()
        if not self.is_cut_off:
            reply = self._log.decide(request)
            self._waiting.append((len(self._log.records) - 1, answer.give, reply))
            self._log.loop.call_later(0.001, self.read)
        return answer

    async def submit(self, request: Any, _: object = None) -> Any:
        return await self.decide(request)

    async def join(self) -> None: ...
    async def run(self) -> None: ...
    async def snapshot_if_due(self) -> None: ...

    async def settle(self) -> None:
        self.read()

    def stop(self) -> None: ...
    def close(self) -> None:
        self._log.readers.remove(self)

    async def abandon(self) -> None:
        self.close()


class Node:
    def __init__(self, cluster: "Cluster", number: int) -> None:
        self.number = number
        self.host = f"b{number}"
        self.cluster = cluster
        self.disk = SimulatedDisk(Random(number), capacity_bytes=1 << 40)
        properties = zero_configuration("/data", host=self.host, port=PORT)
        properties |= {
            "ottla.disk.reserve.bytes": "4096",
            "node.id": str(number),
            "controller.quorum.voters": f"{number}@{self.host}:9093",
            "broker.rack": f"r{number}",
            **cluster.settings,
        }
        self.settings = Settings.load(properties, host_name=lambda: self.host)
        self.broker: Broker
        self.is_up = False
        self.starts = 0

    @property
    def quorum(self) -> SharedQuorum:
        return self.broker.quorum  # type: ignore[return-value]

    def start(self) -> None:
        cluster = self.cluster
        self.starts += 1
        env = Environment(
            cluster.clock,
            self.disk,
            cluster.network.host(self.host),
            InlineWorkers(),
            Random(f"{self.host}/{self.starts}"),
        )
        prepare_up(self.disk, self.settings, cluster.clock.wall(), env.random.randbytes)
        self.broker = Broker(self.settings, env)
        cluster.run(self.broker.start())
        self.is_up = True

    def kill(self) -> None:
        self.is_up = False
        self.cluster.run(self.broker.abort())
        self.cluster.network.reset_some(self.host, 1.0)

    def partition(self, index: int = 0, topic: str = "t") -> ReplicatedPartition:
        found = self.broker.partitions.hosted(topic, bytes(16), index)
        assert isinstance(found, ReplicatedPartition)
        return found

    def values(self, index: int = 0, topic: str = "t", end: int | None = None) -> list[bytes]:
        """What its log holds, up to `end`."""
        log = self.partition(index, topic).log
        end = log.end_offset if end is None else end
        values: list[bytes] = []
        offset = log.log_start_offset
        while offset < end:
            piece = log.read(offset, 1 << 20, end_offset=end)
            assert piece is not None
            data, position = piece.read(), 0
            while position < len(data):
                batch = Batch.parse(data, position)
                values += [record.value or b"" for record in read_records(batch, 1 << 20)]
                position, offset = position + batch.size, batch.next_offset
        return values


class Cluster:
    def __init__(self, count: int, features: dict[str, int], settings: dict[str, str]) -> None:
        self.settings = settings
        self.loop = VirtualLoop()
        self.errors: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self.clock = VirtualClock(self.loop)
        self.network = SimulatedNetwork(self.loop, Random(2), Trace(lambda: self.loop.now_ns))
        self.log = SharedLog(self.loop, self.clock, features)
        self.nodes = {number: Node(self, number) for number in range(1, count + 1)}
        self._client: dict[int, Connection] = {}

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def pass_ms(self, duration_ms: int) -> None:
        self.run(asyncio.sleep(duration_ms / 1000))

    def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        async def wait() -> None:
            async with asyncio.timeout(seconds):
                while not condition():  # noqa: ASYNC110  Time is virtual.
                    await asyncio.sleep(0.001)

        self.run(wait())

    def topic(self, name: str = "t", partitions: int = 1, factor: int = 3, **configs: str) -> None:
        named = [
            create_topics.CreatableTopicConfig(key.replace("_", "."), value)
            for key, value in configs.items()
        ]
        topic = create_topics.CreatableTopic(name, partitions, factor, configs=named)
        made = self.log.decide(create_topics.Request([topic])).topics[0]
        assert made.error_code == 0, made
        self.pass_ms(20)

    def state(self, index: int = 0, topic: str = "t") -> Any:
        return self.log.image.topics_by_name[topic].partitions[index]

    def leader(self, index: int = 0, topic: str = "t") -> Node:
        return self.nodes[self.state(index, topic).leader]

    def followers(self, index: int = 0, topic: str = "t") -> list[Node]:
        state = self.state(index, topic)
        return [self.nodes[node] for node in state.replicas if node != state.leader]

    def notice_death(self, node: Node) -> None:
        self.deny(node)
        self.pass_ms(20)

    def deny(self, node: Node) -> None:
        """The controller takes it for dead; the others hear of it in a moment."""
        epoch = self.log.image.brokers[NodeId(node.number)].epoch
        self.log.decide(Died(NodeId(node.number), epoch))

    async def connection(self, node: Node) -> Connection:
        known = self._client.get(node.number)
        if known is None or not known.is_open:
            known = await Dialer("test").dial(
                self.network.host("client"), Address(node.host, PORT), timeout_ms=10_000
            )
            self._client[node.number] = known
        return known

    def ask(self, node: Node, request: Any, answer: type[Any]) -> Any:
        async def asked() -> Any:
            connection = await self.connection(node)
            return await connection.ask(request, answer, timeout_ms=60_000)

        return self.run(asked())

    def produce(
        self, node: Node, *values: bytes, acks: int = -1, index: int = 0, timeout_ms: int = 5_000
    ) -> produce.PartitionProduceResponse:
        request = produced(self.log.image.topics_by_name["t"].id, values, acks, index, timeout_ms)
        response = self.ask(node, request, produce.Response)
        return response.responses[0].partition_responses[0]

    def fetch(self, node: Node, offset: int = 0, index: int = 0, rack: str = "") -> Any:
        asked = fetch.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        topic = fetch.FetchTopic(topic_id=self.log.image.topics_by_name["t"].id, partitions=[asked])
        request = fetch.Request(max_wait_ms=100, min_bytes=1, topics=[topic], rack_id=rack)
        return self.ask(node, request, fetch.Response).responses[0].partitions[0]


def produced(
    topic_id: bytes, values: tuple[bytes, ...], acks: int, index: int, timeout_ms: int
) -> produce.Request:
    batch = build_batch([Record(i, 0, None, value) for i, value in enumerate(values)])
    part = produce.PartitionProduceData(index, batch)
    topic = produce.TopicProduceData(topic_id=topic_id, partition_data=[part])
    return produce.Request(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])


@contextlib.contextmanager
def replicating(
    brokers: int = 3, features: dict[str, int] | None = None, **settings: object
) -> Iterator[Cluster]:
    """A cluster whose brokers run; at its end nothing may have gone wrong unheard."""
    given = {key.replace("_", "."): str(value) for key, value in settings.items()}
    cluster = Cluster(brokers, features or {}, given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "QuorumDriver", lambda *_: SharedQuorum(cluster.log))
        try:
            for node in cluster.nodes.values():
                node.start()
            yield cluster
            for node in cluster.nodes.values():
                if node.is_up:
                    assert not node.broker.failed.done(), node.broker.failed
                    node.kill()
            assert not cluster.errors, cluster.errors
        finally:
            for task in asyncio.all_tasks(cluster.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                task.get_coro().close()  # type: ignore[union-attr]
            cluster.loop.close()
