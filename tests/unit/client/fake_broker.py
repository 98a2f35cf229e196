"""A broker of a few lines for tests of the client: real bytes over a simulated network.

It keeps what is produced, answers metadata, and does what a test tells it: an answer of a test's
own, silence, or the end of the connection.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from ottla.client.cluster import ClientSettings, Cluster
from ottla.client.frames import LENGTH, Frames
from ottla.env.network import Address, Channel, Network
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.codec import decode, encode_into
from ottla.protocol.header import decode_request_header, response_header
from ottla.protocol.messages import (
    api_versions,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from ottla.records.batch import Batch
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.trace import Trace

SILENCE, HANG_UP = object(), object()
PORT = 9092
Script = Callable[[Any, int], Any]


class FakeBroker:
    """Leads every partition of `topics`, unless `leaders` says otherwise."""

    def __init__(self, world: "World", node_id: int = 1) -> None:
        self.node_id = node_id
        self.host_name = f"broker{node_id}"
        self.topics: dict[str, int] = {"t": 1}
        self.topic_ids = {"t": b"t" * 16, "u": b"u" * 16}
        self.leaders: dict[tuple[str, int], int] = {}
        self.nodes = [1]
        self.requests: list[tuple[ApiKey, int, Any]] = []
        self.script: dict[ApiKey, list[Any]] = defaultdict(list)  # What happens next, per API.
        self.always: dict[ApiKey, Script] = {}
        self.ranges = {key: request_class(key).VERSIONS for key in SERVED}
        self.log: dict[tuple[str, int], bytearray] = defaultdict(bytearray)
        self.end: dict[tuple[str, int], int] = defaultdict(int)
        # The epoch and the next sequence of each producer.
        self.seen: dict[tuple[str, int, int], tuple[int, int]] = {}
        self.next_producer_id = 1000
        self.connections_closed = 0
        self.address = Address(self.host_name, PORT)
        self._network: Network = world.network.host(self.host_name)
        self._listener: Any = None

    def listen_on(self, network: Network) -> None:
        """Serve a free port of this machine, instead of a simulated host."""
        self._network, self.address = network, Address("127.0.0.1", 0)

    async def start(self) -> None:
        host = "" if self.address.port else self.address.host
        self._listener = await self._network.listen(
            host, self.address.port, lambda channel: FakePeer(self, channel)
        )
        self._listener.start()
        if not self.address.port:
            self.address = self._listener.address

    def stop(self) -> None:
        self._listener.close()

    def answer(self, key: ApiKey, version: int, request: Any) -> Any:  # noqa: ANN401
        self.requests.append((key, version, request))
        if self.script[key]:
            step = self.script[key].pop(0)
            return step(request, version) if callable(step) else step
        return self.always.get(key, getattr(self, f"serve_{key.name.lower()}", None))(
            request, version
        )

    def count(self, key: ApiKey) -> int:
        return sum(item[0] == key for item in self.requests)

    # What it does by itself.

    def serve_api_versions(self, request: api_versions.Request, version: int) -> Any:  # noqa: ANN401
        keys = [
            api_versions.ApiVersion(key, served.start, served.stop - 1)
            for key, served in self.ranges.items()
        ]
        if version not in self.ranges[ApiKey.API_VERSIONS]:
            return api_versions.Response(ErrorCode.UNSUPPORTED_VERSION, keys), 0
        return api_versions.Response(0, keys)

    def serve_metadata(self, request: metadata.Request, version: int) -> metadata.Response:
        names = (
            list(self.topics) if request.topics is None else [item.name for item in request.topics]
        )
        return metadata.Response(
            brokers=[
                metadata.MetadataResponseBroker(node, *self._address_of(node))
                for node in self.nodes
            ],
            cluster_id="fake",
            controller_id=self.nodes[0],
            topics=[self._topic(name or "") for name in names],
        )

    def _address_of(self, node: int) -> Address:
        return self.address if node == self.node_id else Address(f"broker{node}", PORT)

    def _topic(self, name: str) -> metadata.MetadataResponseTopic:
        if name not in self.topics:
            return metadata.MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        return metadata.MetadataResponseTopic(
            0,
            name,
            self.topic_ids.get(name, name.encode().ljust(16, b"_")),
            partitions=[
                metadata.MetadataResponsePartition(
                    0, index, self.leaders.get((name, index), self.node_id), 0, [1], [1]
                )
                for index in range(self.topics[name])
            ],
        )

    def serve_init_producer_id(
        self, request: init_producer_id.Request, version: int
    ) -> init_producer_id.Response:
        self.next_producer_id += 1
        return init_producer_id.Response(producer_id=self.next_producer_id, producer_epoch=0)

    def serve_produce(self, request: produce.Request, version: int) -> Any:  # noqa: ANN401
        answer = produce.Response()
        for topic in request.topic_data:
            name = topic.name or self._name(topic.topic_id)
            answer.responses.append(
                produce.TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    [self._append(name, part) for part in topic.partition_data],
                )
            )
        return SILENCE if request.acks == 0 else answer

    def _append(
        self, topic: str, part: produce.PartitionProduceData
    ) -> produce.PartitionProduceResponse:
        place = (topic, part.index)
        batch = Batch(bytearray(part.records or b""))
        assert batch.is_valid, "the client sends sealed batches"
        if batch.producer_id >= 0:
            epoch, expected = self.seen.get((*place, batch.producer_id), (-1, 0))
            if batch.producer_epoch < epoch:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
                return produce.PartitionProduceResponse(part.index, code)
            if batch.producer_epoch > epoch:
                expected = 0
            if batch.base_sequence < expected:
                return produce.PartitionProduceResponse(part.index, 0, 7_000)  # A duplicate.
            if batch.base_sequence > expected:
                code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                return produce.PartitionProduceResponse(part.index, code)
            reached = (batch.producer_epoch, expected + batch.count)
            self.seen[(*place, batch.producer_id)] = reached
        batch.assign(self.end[place], 0)
        self.log[place] += batch.data
        self.end[place] += batch.count
        return produce.PartitionProduceResponse(part.index, 0, batch.base_offset)

    def serve_fetch(self, request: fetch.Request, version: int) -> fetch.Response:
        answer = fetch.Response()
        for topic in request.topics:
            name = topic.topic or self._name(topic.topic_id)
            answer.responses.append(
                fetch.FetchableTopicResponse(
                    topic.topic,
                    topic.topic_id,
                    [
                        fetch.PartitionData(
                            part.partition,
                            high_watermark=self.end[name, part.partition],
                            records=bytes(self.log[name, part.partition])
                            if part.fetch_offset < self.end[name, part.partition]
                            else b"",
                        )
                        for part in topic.partitions
                    ],
                )
            )
        return answer

    def serve_list_offsets(
        self, request: list_offsets.Request, version: int
    ) -> list_offsets.Response:
        return list_offsets.Response(
            topics=[
                list_offsets.ListOffsetsTopicResponse(
                    topic.name,
                    [
                        list_offsets.ListOffsetsPartitionResponse(
                            part.partition_index,
                            0,
                            -1,
                            self.end[topic.name, part.partition_index]
                            if part.timestamp == -1
                            else 0,
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _name(self, topic_id: bytes) -> str:
        return next(name for name, known in self.topic_ids.items() if known == topic_id)


class FakePeer:
    def __init__(self, broker: FakeBroker, channel: Channel) -> None:
        self._broker = broker
        self._channel = channel
        self._frames = Frames(1 << 26)

    def buffer(self) -> memoryview:
        return self._frames.buffer()

    def received(self, count: int) -> None:
        for frame in self._frames.received(count):
            self._serve(frame)

    def sent(self) -> None:
        pass

    def closed(self) -> None:
        self._broker.connections_closed += 1

    def _serve(self, frame: memoryview) -> None:
        header, position = decode_request_header(frame)
        key, version = ApiKey(header.api_key), header.api_version
        request = decode(request_class(key), frame[position:], version)
        answer = self._broker.answer(key, version, request)
        if answer is HANG_UP:
            self._channel.close()
            return
        if answer is SILENCE:
            return
        if isinstance(answer, bytes):  # Whatever a test wants to be on the wire.
            self._channel.send([answer])
            return
        if isinstance(answer, tuple):  # An answer in another version than it was asked for.
            answer, version = answer
        self._channel.send([framed(answer, key, version, header.correlation_id)])


def framed(answer: object, key: ApiKey, version: int, correlation_id: int) -> bytearray:
    """A response as it is on the wire."""
    out = bytearray(LENGTH.size) + response_header(key, version, correlation_id)
    encode_into(answer, version, out)
    LENGTH.pack_into(out, 0, len(out) - LENGTH.size)
    return out


SERVED = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_LOG_DIRS,
)


class World:
    """A loop in virtual time, a network, brokers and a client."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.network = SimulatedNetwork(self.loop, Random(1), Trace(lambda: self.loop.now_ns))
        self.clock = VirtualClock(self.loop)
        self.host = self.network.host("client")
        self.broker = FakeBroker(self)

    def add_broker(self, node_id: int) -> FakeBroker:
        broker = FakeBroker(self, node_id)
        broker.topics, broker.topic_ids = self.broker.topics, self.broker.topic_ids
        broker.leaders, broker.nodes = self.broker.leaders, self.broker.nodes
        self.broker.nodes.append(node_id)
        return broker

    def cluster(self, *names: str, settings: ClientSettings | None = None) -> Cluster:
        return Cluster(
            [Address(name, PORT) for name in names or ("broker1",)],
            network=self.host,
            clock=self.clock,
            source=Random(2),
            settings=settings,
        )

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            await self.broker.start()
            await work()

        try:
            self.loop.run_until_complete(main())
        finally:
            self.loop.close()


async def settle() -> None:
    """Let everything happen that is about to."""
    await asyncio.sleep(0.05)
