"""The client for code that is not async: scripts, and workers that other programs start.

    with Client("localhost:9092") as client:
        client.run(client.admin.create_topic("events", partitions=3))
        client.write("events", [Outgoing(b"value", key=b"key")])
        for message in client.read({TopicPartition("events", 0): 0}, to_end=True):
            print(message.offset, message.value)

Nothing goes on between two calls: no thread is started. One client belongs to one thread.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.blocking_cluster import BlockingCluster
from ottla.client.cluster import ClientSettings
from ottla.client.delivery import ProducerSettings, Written
from ottla.client.message import Message
from ottla.client.offsets import LATEST, find_offsets
from ottla.client.producer import Producer
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.types import Millis, Offset, TopicPartition
from ottla.records.record import Headers

POLL_MS = 1000


class Outgoing(NamedTuple):
    """A record to be written."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Client(BlockingCluster):
    def __init__(self, bootstrap: str, settings: ClientSettings | None = None) -> None:
        super().__init__(bootstrap, settings)
        self.admin = Admin(self.cluster)

    def write(
        self, topic: str, records: Iterable[Outgoing], settings: ProducerSettings | None = None
    ) -> list[Written]:
        """Write records; returns when all are written, and raises if one is not."""

        async def work() -> list[Written]:
            futures = []
            async with Producer(self.cluster, settings) as producer:
                for record in records:
                    future = await producer.send(
                        topic,
                        record.value,
                        record.key,
                        headers=record.headers,
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    futures.append(future)
            return [future.result() for future in futures]

        return self.run(work())

    def read(
        self,
        offsets: Mapping[TopicPartition, Offset],
        *,
        to_end: bool = False,
        idle_ms_max: Millis | None = None,
        settings: ReaderSettings | None = None,
    ) -> Iterator[Message]:
        """Messages from these offsets on: for ever, to the end as it is now, or until idle."""
        settings = settings or ReaderSettings()
        ends: dict[TopicPartition, Offset] = {}
        reader = Reader(self.cluster, offsets, settings)
        if to_end:
            wanted = dict.fromkeys(offsets, LATEST)
            found = self.run(find_offsets(self.cluster, wanted, isolation=settings.isolation))
            ends = {place: item.offset for place, item in found.items()}
        _stop_at(reader, ends)
        try:
            while reader.positions:
                messages = self.run(reader.poll(idle_ms_max or POLL_MS))
                if not messages and idle_ms_max is not None:
                    return
                for message in messages:
                    if not ends or message.offset < ends[message.topic_partition]:
                        yield message
                _stop_at(reader, ends)
        finally:
            reader.close()


def _stop_at(reader: Reader, ends: Mapping[TopicPartition, Offset]) -> None:
    for place, end in ends.items():
        if reader.positions.get(place, -1) >= end:
            reader.stop(place)
