"""Writes changes to their topics, each once and in order, and tracks the position of each
partition.

This holds for one session: the time in which this process owns the slot.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from ottla.cdc.errors import Interrupted
from ottla.cdc.position import NOWHERE, Position, headers_of
from ottla.cdc.topics import Reached, end_offsets
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings, Written
from ottla.client.errors import OUT_OF_SEQUENCE, ClientError, Refused
from ottla.client.partitioner import partition_of_key
from ottla.client.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition

KNOWN_MAX = 20_000
OVERTAKEN = OUT_OF_SEQUENCE | {ErrorCode.INVALID_PRODUCER_EPOCH}

Futures = list["asyncio.Future[Written]"]


class Writer:
    def __init__(self, cluster: Cluster, settings: ProducerSettings) -> None:
        self.written = 0
        self.passed_over = 0  # Already written before a restart.
        self.cluster = cluster
        self._settings = settings
        self._producer: Producer | None = None
        self._places: dict[str, list[TopicPartition]] = {}
        self._known: dict[tuple[str, bytes], TopicPartition] = {}  # Cache: hashing a key is slow.
        self._begun: dict[TopicPartition, Reached] = {}
        self._reached: dict[TopicPartition, Position] = {}
        self._sent: Counter[TopicPartition] = Counter()
        self._last: dict[TopicPartition, asyncio.Future[Written]] = {}

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Write as the owner of the slot; topics must `begin` in each session.

        Interrupted if the broker refuses a batch because another tail has written in between.
        """
        self._begun.clear()
        self._reached.clear()
        self._sent.clear()
        self._last.clear()
        with _told_when_overtaken():
            async with Producer(
                self.cluster, self._settings, lambda place: self._begun[place].numbering
            ) as self._producer:
                yield

    def begin(self, topic: str, reached: Mapping[TopicPartition, Reached]) -> None:
        """Allow writes to the topic, whose partitions are written up to `reached`."""
        self._places[topic] = sorted(reached)
        self._begun.update(reached)
        self._reached.update((place, found.position) for place, found in reached.items())

    def place(self, topic: str, key: bytes) -> TopicPartition:
        places = self._places[topic]
        if len(places) == 1:
            return places[0]
        known = self._known.get((topic, key))
        if known is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            known = self._known[topic, key] = places[partition_of_key(key, len(places))]
        return known

    def places(self, topic: str) -> list[TopicPartition]:
        return self._places[topic]

    def reached(self, place: TopicPartition) -> Position:
        return self._reached.get(place, NOWHERE)

    def is_new(self, place: TopicPartition, position: Position) -> bool:
        if position > self._reached[place]:
            return True
        self.passed_over += 1
        return False

    async def write(
        self,
        place: TopicPartition,
        key: bytes,
        value: bytes | None,
        *,
        op: str,
        position: Position,
        xid: int | None,
        ts_ms: int,
    ) -> None:
        """Send a record. Its position is new, or that of earlier records (a snapshot)."""
        assert position >= self._reached[place], "a partition never goes back"
        self._reached[place] = position
        if place.topic not in self.cluster.metadata.topics:
            await self._find(place.topic)
        assert self._producer is not None, "records are written in a session"
        self._sent[place] += 1
        self._last[place] = await self._producer.send(
            place.topic,
            value,
            key,
            headers=headers_of(op, position, xid, ts_ms),
            partition=place.partition,
            timestamp_ms=ts_ms,
        )
        self.written += 1

    async def _find(self, topic: str) -> None:
        """Look up the topic's leaders until a broker answers; a deleted topic is not recreated."""
        tries = 0
        while True:
            try:
                await self.cluster.topic(topic)
            except ClientError as failure:
                if not failure.is_retriable:
                    raise
                self.cluster.on_trouble(failure)
            else:
                return
            await asyncio.sleep(self.cluster.backoff_ms(tries) / 1000)
            tries += 1

    def take_unconfirmed(self) -> Futures:
        """The future of each partition's last record since the last call; it covers earlier
        ones.
        """
        futures = list(self._last.values())
        self._last.clear()
        return futures

    async def flush(self) -> None:
        assert self._producer is not None, "records are written in a session"
        await self._producer.flush()

    async def check_alone(self) -> None:
        """After a flush: Interrupted if another tail has written in this session."""
        ends = await end_offsets(self.cluster, self._begun)
        for place, end in ends.items():
            if end != self._begun[place].end_offset + self._sent[place]:
                raise Interrupted(f"another tail has written to {place}")


@contextmanager
def _told_when_overtaken() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        if refused.code not in OVERTAKEN:
            raise
        raise Interrupted(f"another tail has written what this one was about to: {refused}") from (
            refused
        )
