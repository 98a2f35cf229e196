"""The clients of a run: producers, consumers and an admin, which note all they do in the history.

They are Ottla's own client on the simulated network, and so ask for nothing that a stock client
would not. None of them gives up before the run ends: a broker that is down comes back.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from types import TracebackType
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.cluster import ClientSettings, Cluster
from ottla.client.delivery import ProducerSettings, Written
from ottla.client.errors import ClientError, Refused
from ottla.client.metadata import UnknownPartition, UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.producer import Producer
from ottla.client.reader import Reader, ReaderSettings
from ottla.client.unpacking import CorruptBatch
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.simulation.clients.old_reader import OldReader
from ottla.simulation.clients.pipelined_producer import PipelinedProducer
from ottla.simulation.clients.session_reader import SessionReader
from ottla.simulation.history.history import (
    IDEMPOTENT,
    PIPELINED,
    End,
    Guarantee,
    History,
    Sent,
    Violation,
)
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.nodes import rack_of

Value = TypeVar("Value")
Connect = Callable[[str, ClientSettings], Cluster]

CLIENT = ClientSettings(
    connect_ms_max=1_000, request_ms_max=2_000, deadline_ms=20_000, backoff_ms_max=300
)
RETRY_SECONDS = 0.1
LATEST_SECONDS = 0.25
PARTITIONS_MAX = 6
TOPIC_PREFIX = "topic-"
READ = ReaderSettings(wait_ms=200, fetch_bytes_max=64 << 10, partition_bytes_max=16 << 10)


class Workload:
    def __init__(self, plan: Plan, history: History, connect: Connect) -> None:
        self.plan = plan
        self.history = history
        self.is_over = False  # Then everybody finishes what is under way.
        self.topics: list[str] = []  # Those that exist for certain.
        self.partitions: dict[str, int] = {}  # As many as each topic has for certain.
        self.deleted: set[str] = set()  # Those that are gone, or may be.
        self.look: Callable[[], None] = _nothing  # Someone knows how logs are trimmed.
        self._connect = connect
        self._made = 0

    # The admin's part.

    async def create_topics(self) -> None:
        admin = Admin(self._connect("admin", CLIENT))
        for _ in range(self.plan.topics):
            await self._create_topic(admin)

    async def replace_topics(self) -> None:
        """Delete a topic now and then, and make another one instead."""
        chance = Random(f"topics/{self.plan.seed}")
        admin = Admin(self._connect("admin", CLIENT))
        rate = self.plan.rates.topic_deletion
        while rate:
            await asyncio.sleep(chance.expovariate(rate))
            if self.is_over:
                return
            await self._create_topic(admin)
            victim = chance.choice(self.topics[:-1])
            self.topics.remove(victim)
            self.deleted.add(victim)
            self.history.forget(victim)
            await persist(partial(_delete, admin, victim))
            self.history.forget(victim)

    async def grow_topics(self) -> None:
        """Let a topic have one more partition now and then."""
        chance = Random(f"growth/{self.plan.seed}")
        admin = Admin(self._connect("growth-admin", CLIENT))
        rate = self.plan.rates.partition_growth
        while rate:
            await asyncio.sleep(chance.expovariate(rate))
            if self.is_over:
                return
            topic = chance.choice(self.topics)
            if (count := self.partitions[topic] + 1) <= PARTITIONS_MAX:
                await persist(partial(_grow, admin, topic, count))
                self.partitions[topic] = count

    async def _create_topic(self, admin: Admin) -> None:
        name = f"{TOPIC_PREFIX}{self._made}"
        self._made += 1
        await persist(partial(_create, admin, name, self.plan))
        self.partitions[name] = self.plan.partitions
        self.topics.append(name)

    # The producers' part.

    async def produce(self, number: int, guarantee: Guarantee) -> None:
        name = f"producer-{number}"
        chance = Random(f"{name}/{self.plan.seed}")
        settings = ProducerSettings(
            acks=guarantee.acks,
            is_idempotent=guarantee is IDEMPOTENT,
            linger_ms=chance.choice((0, 5, 50)),
            codec=chance.choice((0, 0, 1, 2, 3, 4)),
            delivery_ms_max=30_000,
            request_ms_max=2_000,
        )
        pending: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as group:
            cluster = self._connect(name, CLIENT)
            producer = (
                PipelinedProducer(cluster, self.deleted.__contains__)
                if guarantee is PIPELINED
                else Producer(cluster, settings)
            )
            async with Unfailing(producer):
                count = 0
                while not self.is_over:
                    await asyncio.sleep(chance.expovariate(self.plan.records_per_second))
                    sent = self._next(name, count, guarantee, chance)
                    value = b"%s/%d/" % (name.encode(), count)
                    value += bytes(chance.randrange(self.plan.value_bytes_max))
                    count += 1
                    future = await self._send(producer, value, sent)
                    if future is None:
                        cluster.forget(sent.topic_partition.topic)
                    else:
                        pending.append(group.create_task(self._wait(future, value, sent)))
                    if len(pending) > 64:
                        pending = [task for task in pending if not task.done()]
                await asyncio.gather(*pending)

    def _next(self, name: str, number: int, guarantee: Guarantee, chance: Random) -> Sent:
        topic = chance.choice(self.topics)
        place = TopicPartition(topic, chance.randrange(self.partitions[topic]))
        return Sent(name, number, guarantee, place)

    async def _send(
        self, producer: Producer | PipelinedProducer, value: bytes, sent: Sent
    ) -> "asyncio.Future[Written] | None":
        """Hand a value over; the order in which that is done is the order that counts."""
        topic, partition = sent.topic_partition
        try:
            future = await producer.send(topic, value, partition=partition)
        except ClientError as error:
            self._check_explained(error, sent)
            return None
        if topic not in self.deleted:  # Else the history has forgotten the topic meanwhile.
            self.history.sending(value, sent)
        return future

    async def _wait(self, future: "asyncio.Future[Written]", value: bytes, sent: Sent) -> None:
        try:
            written = await future
        except ClientError as error:
            self._check_explained(error, sent)
        else:
            self.history.acknowledged(value, written.offset)

    def _check_explained(self, error: ClientError, sent: Sent) -> None:
        topic_partition = sent.topic_partition
        is_spent = isinstance(error, Refused) and error.code in LOST_SEQUENCES
        if self._may_not_know(error):
            return
        if topic_partition.topic in self.deleted or may_fail(error):
            return
        is_lost = self.plan.may_lose_acknowledged or topic_partition in self.history.uncertain
        if is_spent and is_lost:
            return  # The broker lost what the producer counted on.
        raise Violation(f"{sent.producer} to {topic_partition}: {error!r}") from error

    # The consumers' part.

    async def consume(self, number: int) -> None:
        """Follow every partition from its start; each record must follow the one before it."""
        cluster = self._connect(f"consumer-{number}", CLIENT)
        make, settings = self._kind_of_reader(number), READ
        if self.plan.is_racked:
            settings = replace(READ, rack=rack_of(NodeId(1 + number % self.plan.brokers)))
        positions: dict[TopicPartition, Offset] = {}
        while not self.is_over:
            for topic in self.topics:
                for partition in range(self.partitions[topic]):
                    positions.setdefault(TopicPartition(topic, partition), 0)
            live = {tp: at for tp, at in positions.items() if tp.topic in self.topics}
            try:
                await self._follow(make(cluster, live, settings), positions, f"consumer-{number}")
            except ClientError as error:
                if not self._is_explained(error):
                    raise Violation(f"consumer {number} at {live}: {error!r}") from error
                await asyncio.sleep(RETRY_SECONDS)
                for topic in self.topics:
                    cluster.forget(topic)
                if _is_out_of_range(error):
                    await persist(partial(self._skip_trimmed, cluster, positions))
        cluster.close()

    async def watch_latest(self) -> None:
        """Ask where the logs end, again and again: they do not get shorter."""
        cluster = self._connect("end-watcher", CLIENT)
        loop = asyncio.get_running_loop()
        while not self.is_over:
            await asyncio.sleep(LATEST_SECONDS)
            places = [
                (topic, index) for topic in self.topics for index in range(self.partitions[topic])
            ]
            began = loop.time()
            try:
                found = await find_offsets(
                    cluster, {TopicPartition(*place): LATEST for place in places}
                )
            except ClientError as error:
                if not self._is_explained(error):
                    raise Violation(f"where {places} end: {error!r}") from error
                for topic in self.topics:
                    cluster.forget(topic)
                continue
            for place, one in found.items():
                if place.topic not in self.deleted:
                    end = End(one.offset, one.leader_epoch, began, loop.time())
                    self.history.latest(place, end)
        cluster.close()

    def _kind_of_reader(self, number: int) -> type[Reader | SessionReader]:
        number -= self.plan.session_consumers
        if number < 0:
            return SessionReader
        return OldReader if number < self.plan.old_consumers else Reader

    async def _follow(
        self,
        reader: Reader | SessionReader,
        positions: dict[TopicPartition, Offset],
        name: str,
    ) -> None:
        topics, partitions = list(self.topics), dict(self.partitions)
        while not self.is_over and topics == self.topics and partitions == self.partitions:
            for message in await reader.poll(wait_ms=300):
                topic_partition = message.topic_partition
                if topic_partition.topic in self.deleted:
                    continue
                expected = positions[topic_partition]
                if message.offset != expected:
                    raise Violation(f"{topic_partition} gave {message.offset}, not {expected}")
                positions[topic_partition] = message.offset + 1
                self.history.read(topic_partition, message.offset, message.value or b"", name)

    async def _skip_trimmed(
        self, cluster: Cluster, positions: dict[TopicPartition, Offset]
    ) -> None:
        """Go on where the logs begin now, which is no later than someone wanted it."""
        asked = {place: EARLIEST for place in positions if place.topic in self.topics}
        try:
            starts = await find_offsets(cluster, asked)
        except (UnknownTopic, UnknownPartition):
            return  # It was deleted meanwhile.
        self.look()
        for place, found in starts.items():
            if place in self.history.uncertain:
                positions[place] = found.offset
                continue
            start_max = self.history.trims[place].start_max
            if found.offset > max(start_max, positions[place]):
                raise Violation(f"{place} begins at {found.offset}, not {start_max}")
            positions[place] = max(positions[place], found.offset)

    def _may_not_know(self, error: ClientError) -> bool:
        """A node may not have read the newest metadata, and a client not have asked for it."""
        if isinstance(error, UnknownPartition):
            return bool(self.plan.rates.partition_growth)
        return isinstance(error, UnknownTopic) and not self.plan.is_known_everywhere

    def _is_explained(self, error: ClientError) -> bool:
        """Whether a consumer may meet this: its topic was deleted, or power loss cut the log."""
        if _is_out_of_range(error):
            is_lost = self.plan.may_lose_acknowledged or bool(self.history.uncertain)
            return is_lost or self.plan.is_trimmed
        if self._may_not_know(error):
            return True
        if isinstance(error, CorruptBatch):
            return bool(self.plan.rates.bit_rot)
        return error.is_retriable or bool(self.deleted) or may_fail(error)

    # At the end.

    async def read_all(self) -> dict[TopicPartition, list[tuple[Offset, bytes]]]:
        cluster = self._connect("auditor", CLIENT)
        logs: dict[TopicPartition, list[tuple[Offset, bytes]]] = {}
        for topic in self.topics:
            for partition in range(self.partitions[topic]):
                topic_partition = TopicPartition(topic, partition)
                read = partial(self._read_log, cluster, topic_partition)
                logs[topic_partition] = await persist(read)
        return logs

    async def _read_log(
        self, cluster: Cluster, place: TopicPartition
    ) -> list[tuple[Offset, bytes]]:
        """A deletion that its client gave up may still move the beginning of the log."""
        while True:
            try:
                return await _read(cluster, place)
            except UnknownPartition:
                cluster.forget(place.topic)
                await asyncio.sleep(RETRY_SECONDS)
            except Refused as refused:
                if not (_is_out_of_range(refused) and self.plan.is_trimmed):
                    raise

    async def read_again(self, place: TopicPartition) -> None:
        """Read a partition from its start, as far as that is possible now."""
        cluster = self._connect("late-reader", CLIENT)
        try:
            for offset, value in await _read(cluster, place):
                if place.topic not in self.deleted:
                    self.history.read(place, offset, value)
        except ClientError as error:
            if not self._is_explained(error):
                raise Violation(f"{place} read again: {error!r}") from error
        finally:
            cluster.close()

    async def list_topics(self) -> set[str]:
        admin = Admin(self._connect("auditor", CLIENT))
        described = await persist(admin.describe_topics)
        names = {topic.name or "" for topic in described}
        return {name for name in names if name.startswith(TOPIC_PREFIX)}


class Unfailing:
    """A producer whose failures are told by its sends alone."""

    def __init__(self, producer: Producer | PipelinedProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Producer | PipelinedProducer:
        return await self._producer.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._producer.__aexit__(kind, error, trace)
        except* ClientError:
            pass


async def persist(attempt: Callable[[], Awaitable[Value]]) -> Value:
    """Try until it succeeds; how long that may take, the run decides."""
    while True:
        try:
            return await attempt()
        except ClientError as error:
            if not error.is_retriable and not may_fail(error):
                raise Violation(f"an answer that nothing explains: {error!r}") from error
        await asyncio.sleep(RETRY_SECONDS)


async def _create(admin: Admin, topic: str, plan: Plan) -> None:
    try:
        await admin.create_topic(topic, partitions=plan.partitions, configs=plan.topic_configs)
    except Refused as refused:  # An attempt before this one may have succeeded unheard.
        if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def _grow(admin: Admin, topic: str, count: int) -> None:
    try:
        await admin.create_partitions(topic, count)
    except UnknownTopic:
        pass  # It was deleted meanwhile.
    except Refused as refused:  # An attempt before this one may have succeeded unheard.
        if refused.code != ErrorCode.INVALID_PARTITIONS:
            raise


async def _delete(admin: Admin, topic: str) -> None:
    with suppress(UnknownTopic):  # An attempt before this one may have succeeded unheard.
        await admin.delete_topic(topic)


async def _read(cluster: Cluster, topic_partition: TopicPartition) -> list[tuple[Offset, bytes]]:
    starts = await find_offsets(cluster, {topic_partition: EARLIEST})
    ends = await find_offsets(cluster, {topic_partition: LATEST})
    end = ends[topic_partition].offset
    reader = Reader(cluster, {topic_partition: starts[topic_partition].offset}, READ)
    records: list[tuple[Offset, bytes]] = []
    while reader.positions[topic_partition] < end:
        records += [(m.offset, m.value or b"") for m in await reader.poll(wait_ms=1_000)]
    return records


def _is_out_of_range(error: ClientError) -> bool:
    return isinstance(error, Refused) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE


def _nothing() -> None:
    pass


def may_fail(error: ClientError) -> bool:
    """Failures that a broken connection, a dead broker or a sick disk explain."""
    if isinstance(error, Refused):
        return error.code in EXPLAINED
    return error.is_retriable


LOST_SEQUENCES = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
EXPLAINED = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.INVALID_REPLICATION_FACTOR,  # Some broker is stopping just now.
    }
)
