"""Writes changes to their topics: each once, in order, and remembers how far each partition is."""

import asyncio
from collections.abc import Mapping

from ottla.cdc.position import NOWHERE, Position, headers_of
from ottla.client.cluster import Cluster
from ottla.client.delivery import Written
from ottla.client.errors import ClientError
from ottla.client.partitioner import partition_of_key
from ottla.client.producer import Producer
from ottla.model.types import TopicPartition

KNOWN_MAX = 20_000

Futures = list["asyncio.Future[Written]"]


class Writer:
    def __init__(self, cluster: Cluster, producer: Producer) -> None:
        self.written = 0
        self.passed_over = 0  # Written already, before a restart.
        self._cluster = cluster
        self._producer = producer
        self._places: dict[str, list[TopicPartition]] = {}
        self._known: dict[tuple[str, bytes], TopicPartition] = {}  # The hash takes its time.
        self._reached: dict[TopicPartition, Position] = {}
        self._last: dict[TopicPartition, asyncio.Future[Written]] = {}

    def begin(self, topic: str, reached: Mapping[TopicPartition, Position]) -> None:
        """From here on the topic may be written to; its partitions hold so much already."""
        self._places[topic] = sorted(reached)
        self._reached.update(reached)

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
        """Hand a record over. Its position is new, or that of others before it (a snapshot)."""
        assert position >= self._reached[place], "a partition never goes back"
        self._reached[place] = position
        if place.topic not in self._cluster.metadata.topics:
            await self._find(place.topic)
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
        """Ask again who leads it, as long as nobody answers; it is not made anew if it is gone."""
        tries = 0
        while True:
            try:
                await self._cluster.topic(topic)
            except ClientError as failure:
                if not failure.is_retriable:
                    raise
                self._cluster.on_trouble(failure)
            else:
                return
            await asyncio.sleep(self._cluster.backoff_ms(tries) / 1000)
            tries += 1

    def take_unconfirmed(self) -> Futures:
        """The last record of each partition since the last call: with it, all before it."""
        futures = list(self._last.values())
        self._last.clear()
        return futures

    async def flush(self) -> None:
        await self._producer.flush()
