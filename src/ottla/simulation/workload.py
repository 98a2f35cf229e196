"""The clients of a run: producers, consumers and an admin, which note all they do in the history.

They are Ottla's own client on the simulated network, and so ask for nothing that a stock client
would not. None of them gives up before the run ends: a broker that is down comes back.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.cluster import ClientSettings, Cluster
from ottla.client.delivery import ProducerSettings, Written
from ottla.client.errors import ClientError, Refused
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.producer import Producer
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.errors import ErrorCode
from ottla.model.types import Offset, TopicPartition
from ottla.simulation.history import ACKS_NONE, IDEMPOTENT, Guarantee, History, Sent, Violation
from ottla.simulation.old_reader import OldReader
from ottla.simulation.plan import Plan
from ottla.simulation.session_reader import SessionReader

Value = TypeVar("Value")
Connect = Callable[[str, ClientSettings], Cluster]

CLIENT = ClientSettings(
    connect_ms_max=1_000, request_ms_max=2_000, deadline_ms=20_000, backoff_ms_max=300
)
RETRY_SECONDS = 0.1
TOPIC_PREFIX = "topic-"
READ = ReaderSettings(wait_ms=200, fetch_bytes_max=64 << 10, partition_bytes_max=16 << 10)


class Workload:
    def __init__(self, plan: Plan, history: History, connect: Connect) -> None:
        self.plan = plan
        self.history = history
        self.is_over = False  # Then everybody finishes what is under way.
        self.topics: list[str] = []  # Those that exist for certain.
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

    async def _create_topic(self, admin: Admin) -> None:
        name = f"{TOPIC_PREFIX}{self._made}"
        self._made += 1
        await persist(partial(_create, admin, name, self.plan))
        self.topics.append(name)

    # The producers' part.

    async def produce(self, number: int, guarantee: Guarantee) -> None:
        name = f"producer-{number}"
        chance = Random(f"{name}/{self.plan.seed}")
        settings = ProducerSettings(
            acks=0 if guarantee is ACKS_NONE else -1 if guarantee is IDEMPOTENT else 1,
            is_idempotent=guarantee is IDEMPOTENT,
            linger_ms=chance.choice((0, 5, 50)),
            codec=chance.choice((0, 0, 1, 2, 3, 4)),
            delivery_ms_max=30_000,
            request_ms_max=2_000,
        )
        pending: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as group:
            producer = Producer(self._connect(name, CLIENT), settings)
            async with Unfailing(producer):
                count = 0
                while not self.is_over:
                    await asyncio.sleep(chance.expovariate(self.plan.records_per_second))
                    sent = self._next(name, count, guarantee, chance)
                    value = b"%s/%d/" % (name.encode(), count)
                    value += bytes(chance.randrange(self.plan.value_bytes_max))
                    count += 1
                    future = await self._send(producer, value, sent)
                    if future is not None:
                        pending.append(group.create_task(self._wait(future, value, sent)))
                    if len(pending) > 64:
                        pending = [task for task in pending if not task.done()]
                await asyncio.gather(*pending)

    def _next(self, name: str, number: int, guarantee: Guarantee, chance: Random) -> Sent:
        partition = chance.randrange(self.plan.partitions)
        topic_partition = TopicPartition(chance.choice(self.topics), partition)
        return Sent(name, number, guarantee, topic_partition)

    async def _send(
        self, producer: Producer, value: bytes, sent: Sent
    ) -> "asyncio.Future[Written] | None":
        """Hand a value over; the order in which that is done is the order that counts."""
        topic, partition = sent.topic_partition
        try:
            future = await producer.send(topic, value, partition=partition)
        except ClientError as error:
            self._check_explained(error, sent)
            return None
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
        if isinstance(error, UnknownTopic) and not self.plan.is_known_everywhere:
            return
        if topic_partition.topic in self.deleted or _may_fail(error):
            return
        if is_spent and self.plan.may_lose_acknowledged:
            return  # The broker lost what the producer counted on.
        raise Violation(f"{sent.producer} to {topic_partition}: {error!r}") from error

    # The consumers' part.

    async def consume(self, number: int) -> None:
        """Follow every partition from its start; each record must follow the one before it."""
        cluster = self._connect(f"consumer-{number}", CLIENT)
        make = self._kind_of_reader(number)
        positions: dict[TopicPartition, Offset] = {}
        while not self.is_over:
            for topic in self.topics:
                for partition in range(self.plan.partitions):
                    positions.setdefault(TopicPartition(topic, partition), 0)
            live = {tp: at for tp, at in positions.items() if tp.topic in self.topics}
            try:
                await self._follow(make(cluster, live, READ), positions, f"consumer-{number}")
            except ClientError as error:
                if not self._is_explained(error):
                    raise Violation(f"consumer {number} at {live}: {error!r}") from error
                await asyncio.sleep(RETRY_SECONDS)
                if _is_out_of_range(error):
                    await persist(partial(self._skip_trimmed, cluster, positions))
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
        topics = list(self.topics)
        while not self.is_over and topics == self.topics:
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
        except UnknownTopic:
            return  # It was deleted meanwhile.
        self.look()
        for place, found in starts.items():
            start_max = self.history.trims[place].start_max
            if found.offset > max(start_max, positions[place]):
                raise Violation(f"{place} begins at {found.offset}, not {start_max}")
            positions[place] = max(positions[place], found.offset)

    def _is_explained(self, error: ClientError) -> bool:
        """Whether a consumer may meet this: its topic was deleted, or power loss cut the log."""
        if _is_out_of_range(error):
            return self.plan.may_lose_acknowledged or self.plan.is_trimmed
        if isinstance(error, UnknownTopic) and not self.plan.is_known_everywhere:
            return True
        return error.is_retriable or bool(self.deleted) or _may_fail(error)

    # At the end.

    async def read_all(self) -> dict[TopicPartition, list[tuple[Offset, bytes]]]:
        cluster = self._connect("auditor", CLIENT)
        logs: dict[TopicPartition, list[tuple[Offset, bytes]]] = {}
        for topic in self.topics:
            for partition in range(self.plan.partitions):
                topic_partition = TopicPartition(topic, partition)
                logs[topic_partition] = await persist(partial(_read, cluster, topic_partition))
        return logs

    async def list_topics(self) -> set[str]:
        admin = Admin(self._connect("auditor", CLIENT))
        described = await persist(admin.describe_topics)
        names = {topic.name or "" for topic in described}
        return {name for name in names if name.startswith(TOPIC_PREFIX)}


class Unfailing:
    """A producer whose failures are told by its sends alone."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Producer:
        return await self._producer.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._producer.__aexit__(None, None, None)
        except* ClientError:
            pass


async def persist(attempt: Callable[[], Awaitable[Value]]) -> Value:
    """Try until it succeeds; how long that may take, the run decides."""
    while True:
        try:
            return await attempt()
        except ClientError as error:
            if not error.is_retriable and not _may_fail(error):
                raise Violation(f"an answer that nothing explains: {error!r}") from error
        await asyncio.sleep(RETRY_SECONDS)


async def _create(admin: Admin, topic: str, plan: Plan) -> None:
    try:
        await admin.create_topic(topic, partitions=plan.partitions, configs=plan.topic_configs)
    except Refused as refused:  # An attempt before this one may have succeeded unheard.
        if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
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


def _may_fail(error: ClientError) -> bool:
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
