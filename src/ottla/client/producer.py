"""Writes records: in batches per partition, each once and in order, whatever the network does.

    async with Producer(cluster) as producer:
        written = await producer.send("events", b"value", key=b"key")
        print((await written).offset)

Idempotent by default. Memory is bounded: `send` waits while too much is under way. Leaving the
block, like `flush`, waits until all is written, and raises the first failure since the last time.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType

from ottla.client.cluster import Cluster
from ottla.client.delivery import Delivery, ProducerSettings, Written
from ottla.client.errors import ClientError, check
from ottla.client.idempotence import Identity, Numbering
from ottla.client.metadata import Topic, UnknownPartition
from ottla.client.partitioner import StickyPartitions, partition_of_key
from ottla.model.types import TopicPartition
from ottla.protocol.messages import init_producer_id as wire
from ottla.records.record import Headers, Record

RECORD_OVERHEAD_BYTES = 24  # About what a record's lengths and deltas take.


class Producer:
    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings | None = None,
        numbering: Callable[[TopicPartition], Numbering] | None = None,
    ) -> None:
        """With a `numbering`, batches continue those of an earlier process: the broker drops what
        that process has written, and refuses a batch if it has written something else."""
        self.settings = settings or ProducerSettings()
        self._numbering = numbering
        self.unwritten_bytes = 0
        self._cluster = cluster
        self._sticky = StickyPartitions(cluster.random)
        self._deliveries: dict[TopicPartition, Delivery] = {}
        self._tasks = asyncio.TaskGroup()
        self._running: list[asyncio.Task[None]] = []
        self._room = asyncio.Event()
        self._failure: ClientError | None = None

    async def __aenter__(self) -> "Producer":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self.flush()
        finally:
            for task in self._running:
                task.cancel()
            if isinstance(error, Exception):  # It is the caller's own: no group around it.
                kind = error = trace = None
            await self._tasks.__aexit__(kind, error, trace)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> "asyncio.Future[Written]":
        """Hand a record over; the future tells where it was written, or why it was not."""
        while self.unwritten_bytes >= self.settings.buffer_bytes_max:
            self._room.clear()
            await self._room.wait()
        known = self._cluster.metadata.topics.get(topic) or await self._cluster.topic(
            topic, may_create=True
        )
        chosen = self._choose(known, key, partition)
        delivery = self._deliveries.get(chosen) or self._begin(chosen)
        if timestamp_ms is None:
            timestamp_ms = self._cluster.clock.wall()
        size = RECORD_OVERHEAD_BYTES + len(value or b"") + len(key or b"")
        for name, content in headers:
            size += len(name) + len(content or b"") + 4
        self.unwritten_bytes += size
        return delivery.add(Record(0, timestamp_ms, key, value, headers), size)

    async def flush(self) -> None:
        """Wait until all that was sent is written or has failed; raise the first failure."""
        for delivery in list(self._deliveries.values()):
            await delivery.wait_empty()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _choose(self, topic: Topic, key: bytes | None, partition: int | None) -> TopicPartition:
        if partition is None:
            if key is not None:
                partition = partition_of_key(key, len(topic.partitions))
            else:
                partition = self._sticky.choose(topic.name, topic.led or list(topic.partitions))
        elif partition not in topic.partitions:
            raise UnknownPartition(topic.name, partition, len(topic.partitions))
        return TopicPartition(topic.name, partition)

    def _begin(self, topic_partition: TopicPartition) -> Delivery:
        delivery = self._deliveries[topic_partition] = Delivery(
            *(self._cluster, topic_partition, self.settings, self._identify, self._delivered),
            numbering=self._numbering(topic_partition) if self._numbering else None,
        )
        self._running.append(self._tasks.create_task(delivery.run()))
        return delivery

    def _delivered(
        self, topic_partition: TopicPartition, size: int, failure: ClientError | None
    ) -> None:
        self.unwritten_bytes -= size
        self._failure = self._failure or failure
        self._sticky.batch_sent(*topic_partition)
        self._room.set()

    async def _identify(self) -> Identity:
        return await new_identity(self._cluster)


async def new_identity(cluster: Cluster) -> Identity:
    """A producer id of our own; with it brokers tell a retry from a new batch."""

    async def attempt() -> Identity:
        connection = await cluster.any_broker()
        answer = await connection.ask(
            wire.Request(transactional_id=None, transaction_timeout_ms=0),
            wire.Response,
            timeout_ms=cluster.settings.request_ms_max,
        )
        check(answer.error_code, about="no producer id")
        return Identity(answer.producer_id, answer.producer_epoch)

    return await cluster.retrying(attempt)
