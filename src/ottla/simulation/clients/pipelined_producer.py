"""An idempotent producer with up to five batches of a partition in flight, as Kafka's client has.

Batches that a lost answer leaves in doubt are sent again, in their order and with their sequences:
the broker must know each of them, not only the last. A batch in doubt that is refused as out of
sequence stays in doubt: a leader that was restarted may know a later one alone. The batches after
it go on in the next producer epoch, as those of Kafka's client do. No other batch is given up,
unless its topic is deleted or no broker ever takes it.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.delivery import Written
from ottla.client.errors import ClientError, Refused, RequestTimeout
from ottla.client.idempotence import Identity
from ottla.client.metadata import Topic
from ottla.client.producer import new_identity
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import produce
from ottla.records.record import Record, build_batch

IN_FLIGHT_MAX: Final = 5
RETRY_SECONDS: Final = 0.05
ACKS_ALL: Final = -1
TIMEOUT_MS: Final = 2_000
WRITTEN: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


class Waiting(NamedTuple):
    """A record that has not been sent yet."""

    record: Record
    future: "asyncio.Future[Written]"


class Package(NamedTuple):
    """A sealed batch of one record."""

    data: bytearray
    future: "asyncio.Future[Written]"


class PipelinedProducer:
    def __init__(self, cluster: Cluster, is_deleted: Callable[[str], bool]) -> None:
        """`is_deleted`: whether a topic was deleted, or may have been."""
        self._cluster = cluster
        self._is_deleted = is_deleted
        self._queues: dict[TopicPartition, asyncio.Queue[Waiting]] = {}
        self._identity: Identity | None = None
        self._tasks = asyncio.TaskGroup()
        self._pumps: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "PipelinedProducer":
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
                for queue in self._queues.values():
                    await queue.join()
        finally:
            for pump in self._pumps:
                pump.cancel()
            await self._tasks.__aexit__(kind, error, trace)

    async def send(self, topic: str, value: bytes, *, partition: int) -> "asyncio.Future[Written]":
        if self._identity is None:
            self._identity = await new_identity(self._cluster)
        place = TopicPartition(topic, partition)
        record = Record(0, self._cluster.clock.wall(), None, value)
        waiting = Waiting(record, asyncio.get_running_loop().create_future())
        if place not in self._queues:
            self._queues[place] = asyncio.Queue()
            pump = self._pump(place, Numbering(self._identity))
            self._pumps.append(self._tasks.create_task(pump))
        self._queues[place].put_nowait(waiting)
        return waiting.future

    async def _pump(self, place: TopicPartition, numbering: "Numbering") -> None:
        """A broker that knows nothing of a producer takes any sequence: the first goes alone."""
        queue, in_flight, in_flight_max = self._queues[place], list[Package](), 1
        while True:
            if not in_flight:
                if numbering.is_spent:
                    numbering.raise_epoch()
                    in_flight_max = 1
                in_flight.append(numbering.seal(await queue.get()))
            while not (numbering.is_spent or queue.empty()) and len(in_flight) < in_flight_max:
                in_flight.append(numbering.seal(queue.get_nowait()))
            failure = await self._attempt(place, in_flight[:in_flight_max])
            self._give_up(place, in_flight, failure)
            is_open = not in_flight[0].future.done()
            if is_open and in_flight_max == 1 and _is_out_of_sequence(failure):
                in_flight[0].future.set_exception(RequestTimeout(f"{place}: in doubt"))
                numbering.is_spent = True
            for package in [one for one in in_flight if one.future.done()]:
                in_flight.remove(package)
                queue.task_done()
            in_flight_max = IN_FLIGHT_MAX if failure is None else 1
            if failure is not None:
                self._cluster.forget(place.topic)
                await asyncio.sleep(RETRY_SECONDS)

    def _give_up(
        self, place: TopicPartition, packages: list[Package], failure: ClientError | None
    ) -> None:
        if failure is not None and (self._is_deleted(place.topic) or _is_final(failure)):
            for package in [one for one in packages if not one.future.done()]:
                package.future.set_exception(failure)

    async def _attempt(self, place: TopicPartition, packages: list[Package]) -> ClientError | None:
        """Send all of them before the first is answered; the first failure, if there is one."""
        timeout_ms = self._cluster.settings.request_ms_max
        failure: ClientError | None = None
        try:
            topic = await self._cluster.topic(place.topic)
            node = await self._cluster.leader_id(place)
            connection = await self._cluster.broker(node, lane=self)
        except ClientError as error:
            return error
        answers = [
            connection.send(_request(topic, place.partition, package.data), produce.Response)
            for package in packages
        ]
        for package, answer in zip(packages, answers, strict=True):
            try:
                topics = (await connection.wait(answer, timeout_ms)).responses
                result = topics[0].partition_responses[0]
                if result.error_code not in WRITTEN:
                    raise Refused(result.error_code, about=str(place))
                offset = result.base_offset if result.error_code == ErrorCode.NONE else -1
                package.future.set_result(Written(*place, offset, -1))
            except ClientError as error:
                failure = failure or error
        return failure


class Numbering:
    """Producer epoch and next sequence of one partition."""

    def __init__(self, identity: Identity) -> None:
        self.is_spent = False  # A batch is in doubt: no other may follow in this epoch.
        self._producer_id = identity.producer_id
        self._epoch = identity.producer_epoch
        self._sequence = 0

    def seal(self, waiting: Waiting) -> Package:
        data = build_batch(
            [waiting.record],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
        )
        self._sequence += 1
        return Package(data, waiting.future)

    def raise_epoch(self) -> None:
        self._epoch += 1
        self._sequence = 0
        self.is_spent = False


def _is_out_of_sequence(failure: ClientError | None) -> bool:
    return isinstance(failure, Refused) and failure.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _is_final(failure: ClientError) -> bool:
    """A batch that no broker ever takes. Out of sequence is one that came before another."""
    if not isinstance(failure, Refused) or failure.is_retriable:
        return False
    return not _is_out_of_sequence(failure)


def _request(topic: Topic, partition: int, data: bytearray) -> produce.Request:
    part = produce.PartitionProduceData(partition, data)
    return produce.Request(
        acks=ACKS_ALL,
        timeout_ms=TIMEOUT_MS,
        topic_data=[produce.TopicProduceData(topic.name, topic.id, [part])],
    )
