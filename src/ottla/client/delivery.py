"""The records of one producer for one partition, on their way.

One batch is under way at a time, so that order needs no further care; what is added meanwhile
becomes the next batch. A batch keeps its producer id, epoch and sequence over all attempts that may
have been written: the broker drops duplicates. A batch that was certainly never written and is out
of sequence is sent under the next epoch, from sequence 0 (KIP-360). Unlike Kafka's client, a batch
that may have been written never is: a deposed leader answers OUT_OF_ORDER_SEQUENCE_NUMBER too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Refused, check
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, Monotonic, Offset, TopicPartition
from ottla.protocol.messages import produce as wire
from ottla.records.batch import SEQUENCE_MAX
from ottla.records.record import Record, build_batch

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
NAMES_VERSION_MAX = 12  # From 13 on, topics are named by their ids.
EPOCH_MAX = 32767
# The broker's log ends before, or after, the sequence that the producer counts on.
OUT_OF_SEQUENCE = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
# Refusals after which the batch may lie in a log all the same: a leader that is deposed, or loses
# its disk, refuses what it has appended and perhaps replicated.
MAYBE_WRITTEN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


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


class Identity(NamedTuple):
    producer_id: int
    producer_epoch: int


class Numbering(NamedTuple):
    """Producer id, epoch and next sequence of a partition, where an earlier process left them."""

    identity: Identity
    next_sequence: int = 0


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


@dataclass(slots=True)
class Package:
    """A batch with what has become of it so far."""

    items: list[Pending]
    data: bytearray | None = None  # Sealed at the first attempt.
    may_be_written: bool = False
    tries: int = 0


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
        self._is_numbered = numbering is not None
        self._identity = numbering.identity if numbering else None
        self._next_sequence = numbering.next_sequence if numbering else 0
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
            items = self._take()
            await self._deliver(Package(items), self._deadline())
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

    async def _deliver(self, package: Package, deadline: Monotonic) -> ClientError | None:
        """Attempt until the batch is written; returns why, if it has failed for good."""
        if self._stopped_by is not None:
            self._fail(package, self._stopped_by)
            return self._stopped_by
        while True:
            try:
                base_offset, timestamp_ms = await self._attempt(package)
            except ClientError as failure:
                if _is_too_large(failure, package):
                    return await self._deliver_halves(package, deadline)
                if not await self._may_try_again(failure, package, deadline):
                    self._fail(package, failure)
                    return failure
            else:
                self._succeed(package, base_offset, timestamp_ms)
                return None

    async def _attempt(self, package: Package) -> tuple[Offset, int]:
        if self._settings.uses_id and self._identity is None:
            self._identity, self._next_sequence = await self._identify(), 0
        if package.data is None:
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
            await connection.wait_sent()
            return -1, -1
        package.may_be_written, was_uncertain = True, package.may_be_written
        answer = await connection.wait(
            connection.send(request, wire.Response, version=version),
            self._settings.request_ms_max,
        )
        result = answer.responses[0].partition_responses[0]
        if result.error_code not in MAYBE_WRITTEN:
            package.may_be_written = was_uncertain
        if result.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1, -1  # It was written long ago, before what the broker remembers.
        check(result.error_code, result.error_message, about=str(self._topic_partition))
        return result.base_offset, result.log_append_time_ms

    def _seal(self, package: Package) -> bytearray:
        identity = self._identity or Identity(-1, -1)
        return build_batch(
            [item.record._replace(offset=index) for index, item in enumerate(package.items)],
            codec=self._settings.codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=self._next_sequence if self._identity else -1,
        )

    async def _may_try_again(
        self, failure: ClientError, package: Package, deadline: Monotonic
    ) -> bool:
        """Make ready for another attempt, after a pause; False if there must be none."""
        code = failure.code if isinstance(failure, Refused) else ErrorCode.NONE
        if code in OUT_OF_SEQUENCE and not self._is_numbered:
            # Else the same batch again: the next leader has what was acknowledged.
            if not package.may_be_written:
                self._raise_epoch()
                package.data = None
        elif code == ErrorCode.INVALID_PRODUCER_EPOCH and not self._is_numbered:
            if package.may_be_written:
                return False
            self._identity, package.data = None, None
        elif not failure.is_retriable:
            return False
        self._cluster.forget(self._topic_partition.topic)
        wait_ms = self._cluster.backoff_ms(package.tries)
        package.tries += 1
        if self._cluster.clock.monotonic() + wait_ms > deadline:
            return False
        self._cluster.on_trouble(failure)
        await asyncio.sleep(wait_ms / 1000)
        return True

    def _raise_epoch(self) -> None:
        """Begin again at sequence 0; the broker then refuses batches of the epoch before."""
        if self._identity is not None:
            producer_id, epoch = self._identity
            self._identity = Identity(producer_id, epoch + 1) if epoch < EPOCH_MAX else None
            self._next_sequence = 0

    async def _deliver_halves(self, package: Package, deadline: Monotonic) -> ClientError | None:
        """Two batches, one after the other; the first one's failure if there is any.

        If the whole batch may be in the log, its halves are no duplicates to the broker: neither
        may be sent under another epoch.
        """
        middle = len(package.items) // 2
        first = Package(package.items[:middle], may_be_written=package.may_be_written)
        second = Package(package.items[middle:], may_be_written=package.may_be_written)
        failure = await self._deliver(first, deadline)
        if failure is not None and package.may_be_written:
            self._fail(second, failure)
            return failure
        return await self._deliver(second, deadline) or failure

    def _succeed(self, package: Package, base_offset: Offset, timestamp_ms: int) -> None:
        if self._identity is not None:
            self._next_sequence = (self._next_sequence + len(package.items)) & SEQUENCE_MAX
        topic, partition = self._topic_partition
        for index, (record, _, future) in enumerate(package.items):
            offset = base_offset + index if base_offset >= 0 else -1
            stamp = timestamp_ms if timestamp_ms >= 0 else record.timestamp
            if not future.done():  # Else its owner does not wait any more.
                future.set_result(Written(topic, partition, offset, stamp))
        self._done(package, None)

    def _fail(self, package: Package, failure: ClientError) -> None:
        if package.may_be_written and not self._is_numbered:
            self._raise_epoch()  # Its sequence may be used; and it may still be on its way.
        if self._settings.stops_at_failure or self._is_numbered:
            self._stopped_by = failure
        for item in package.items:
            if not item.future.done():
                item.future.set_exception(failure)
                item.future.exception()  # The producer tells it too, so it may go unread here.
        self._done(package, failure)

    def _done(self, package: Package, failure: ClientError | None) -> None:
        size = sum(item.size for item in package.items)
        self._delivered(self._topic_partition, size, failure)


def _is_too_large(failure: ClientError, package: Package) -> bool:
    return isinstance(failure, Refused) and failure.code in TOO_LARGE and len(package.items) > 1
