"""The records of one producer for one partition, on their way.

One batch is under way at a time, so that order needs no further care; what is added meanwhile
becomes the next batch. `idempotence` numbers the batches and decides about those that fail.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Refused
from ottla.client.idempotence import Identity, Numbering, OutgoingBatch, Unconfirmed, Verdict
from ottla.model.types import Millis, Monotonic, Offset, TopicPartition
from ottla.protocol.messages import produce as wire
from ottla.records.record import Record, build_batch

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
NAMES_VERSION_MAX = 12  # From 13 on, topics are named by their ids.


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    acks: int = ACKS_ALL
    codec: int = 0
    is_idempotent: bool = True
    linger_ms: Millis = 5
    batch_bytes_max: int = 256 * 1024
    buffer_bytes_max: int = 32 * 1024 * 1024
    delivery_ms_max: Millis = 120_000  # For a batch with all of its retries.
    request_ms_max: Millis = 30_000
    stops_at_failure: bool = False  # Write nothing of a partition after what could not be written.

    @property
    def uses_id(self) -> bool:
        """Idempotence needs to know what was written, by all in-sync replicas."""
        return self.is_idempotent and self.acks == ACKS_ALL


class Written(NamedTuple):
    """Where a record was written; the offset is -1 if the broker did not say (acks 0)."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int


class Pending(NamedTuple):
    record: Record
    size: int
    future: "asyncio.Future[Written]"


@dataclass(slots=True, eq=False, kw_only=True)
class Package(OutgoingBatch):
    """A batch with those who wait for its records."""

    items: list[Pending]
    tries: int = 0

    @classmethod
    def of(cls, items: list[Pending]) -> "Package":
        return cls(count=len(items), items=items)

    def halves(self) -> "tuple[Package, Package]":
        middle = self.count // 2
        return Package.of(self.items[:middle]), Package.of(self.items[middle:])


class Delivery:
    def __init__(
        self,
        cluster: Cluster,
        topic_partition: TopicPartition,
        settings: ProducerSettings,
        identify: Callable[[], Awaitable[Identity]],
        delivered: Callable[[TopicPartition, int, ClientError | None], None],
        numbering: Numbering | None = None,
    ) -> None:
        """With a `numbering`, no other producer id or epoch is ever used: a batch out of sequence
        fails, and all that follow it."""
        self._cluster = cluster
        self._topic_partition = topic_partition
        self._settings = settings
        self._identify = identify
        self._delivered = delivered
        self._queue: deque[Pending] = deque()
        self._queued_bytes = 0
        self._something = asyncio.Event()
        self._enough = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        identity, next_sequence = numbering or (None, 0)
        self._unconfirmed: Unconfirmed[Package] = Unconfirmed(identity, next_sequence)
        self._unconfirmed.is_fixed = numbering is not None
        self._stopped_by: ClientError | None = None

    def add(self, record: Record, size: int) -> "asyncio.Future[Written]":
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._queue.append(Pending(record, size, future))
        self._queued_bytes += size
        self._something.set()
        self._empty.clear()
        if self._queued_bytes >= self._settings.batch_bytes_max:
            self._enough.set()
        return future

    async def wait_empty(self) -> None:
        self._enough.set()  # Whoever waits for the end does not wait for more to come.
        await self._empty.wait()

    async def run(self) -> None:
        while True:
            await self._something.wait()
            await self._linger()
            self._unconfirmed.add(Package.of(self._take()))
            await self._deliver(self._deadline())
            if not self._queue:
                self._something.clear()
                self._enough.clear()
                self._empty.set()

    async def _linger(self) -> None:
        if self._settings.linger_ms and not self._enough.is_set():
            try:
                async with asyncio.timeout(self._settings.linger_ms / 1000):
                    await self._enough.wait()
            except TimeoutError:
                pass

    def _take(self) -> list[Pending]:
        items = [self._queue.popleft()]
        size = items[0].size
        while self._queue and size + self._queue[0].size <= self._settings.batch_bytes_max:
            items.append(self._queue.popleft())
            size += items[-1].size
        self._queued_bytes -= size
        return items

    def _deadline(self) -> Monotonic:
        return Monotonic(self._cluster.clock.monotonic() + self._settings.delivery_ms_max)

    async def _deliver(self, deadline: Monotonic) -> None:
        """Attempt until every batch is written or has failed permanently."""
        while self._unconfirmed.batches:
            package = self._unconfirmed.batches[0]
            if self._stopped_by is not None:
                self._fail(package, self._stopped_by)
                continue
            try:
                base_offset, timestamp_ms = await self._attempt(package)
            except ClientError as failure:
                verdict = self._unconfirmed.failed(package, failure)
                if verdict is Verdict.SPLIT:
                    self._unconfirmed.split(*package.halves())
                elif verdict is Verdict.FAILED or not await self._pause(package, failure, deadline):
                    self._give_up(package, failure)
            else:
                self._succeed(package, base_offset, timestamp_ms)

    async def _attempt(self, package: Package) -> tuple[Offset, int]:
        if self._settings.uses_id and self._unconfirmed.identity is None:
            self._unconfirmed.identify(await self._identify())
        if not package.data:
            package.data = self._seal(package)
        topic = await self._cluster.topic(self._topic_partition.topic)
        connection = await self._cluster.leader(self._topic_partition)
        version_max = None if topic.has_id else NAMES_VERSION_MAX
        version = connection.version_for(wire.Request, version_max)
        request = wire.Request(
            acks=self._settings.acks,
            timeout_ms=self._settings.request_ms_max,
            topic_data=[
                wire.TopicProduceData(
                    topic.name,
                    topic.id,
                    [wire.PartitionProduceData(self._topic_partition.partition, package.data)],
                )
            ],
        )
        if self._settings.acks == ACKS_NONE:
            connection.send_unanswered(request, version=version)
            await connection.wait_sent(self._settings.request_ms_max)
            self._unconfirmed.confirm(package)
            return -1, -1
        self._unconfirmed.sent(package)
        answer = await connection.wait(
            connection.send(request, wire.Response, version=version),
            self._settings.request_ms_max,
        )
        result = answer.responses[0].partition_responses[0]
        if not self._unconfirmed.answered(package, result.error_code):
            raise Refused(result.error_code, result.error_message, str(self._topic_partition))
        if result.error_code:  # It was written before, and the broker does not know where.
            return -1, -1
        return result.base_offset, result.log_append_time_ms

    def _seal(self, package: Package) -> bytearray:
        numbers = package.numbers
        return build_batch(
            [item.record._replace(offset=index) for index, item in enumerate(package.items)],
            codec=self._settings.codec,
            producer_id=numbers.producer_id,
            producer_epoch=numbers.producer_epoch,
            base_sequence=numbers.base_sequence,
        )

    async def _pause(self, package: Package, failure: ClientError, deadline: Monotonic) -> bool:
        """Wait before another attempt; False if there is no time left for one."""
        self._cluster.forget(self._topic_partition.topic)
        wait_ms = self._cluster.backoff_ms(package.tries)
        package.tries += 1
        if self._cluster.clock.monotonic() + wait_ms > deadline:
            return False
        self._cluster.on_trouble(failure)
        await asyncio.sleep(wait_ms / 1000)
        return True

    def _succeed(self, package: Package, base_offset: Offset, timestamp_ms: int) -> None:
        topic, partition = self._topic_partition
        for index, (record, _, future) in enumerate(package.items):
            offset = base_offset + index if base_offset >= 0 else -1
            stamp = timestamp_ms if timestamp_ms >= 0 else record.timestamp
            if not future.done():  # Else its owner does not wait any more.
                future.set_result(Written(topic, partition, offset, stamp))
        self._done(package, None)

    def _give_up(self, package: Package, failure: ClientError) -> None:
        """Fail a batch, and with it the other halves of one that may be written as a whole."""
        for each in list(self._unconfirmed.batches):
            if each is package or each.may_be_written:
                self._fail(each, failure)

    def _fail(self, package: Package, failure: ClientError) -> None:
        self._unconfirmed.abandon(package)
        if self._settings.stops_at_failure or self._unconfirmed.is_fixed:
            self._stopped_by = failure
        for item in package.items:
            if not item.future.done():
                item.future.set_exception(failure)
                item.future.exception()  # The producer tells it too, so it may go unread here.
        self._done(package, failure)

    def _done(self, package: Package, failure: ClientError | None) -> None:
        size = sum(item.size for item in package.items)
        self._delivered(self._topic_partition, size, failure)
