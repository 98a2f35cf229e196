"""A small blocking client for tests.

Each call connects, sends its requests and disconnects. It also works in a coroutine test: it runs
in a thread, and blocks the test's loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ottla.client.admin import BROKER_DEFAULT, Admin
from ottla.client.cluster import ClientSettings, Cluster
from ottla.client.groups import Groups
from ottla.client.message import Message
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.producer import Producer
from ottla.client.reader import Reader
from ottla.client.session import run
from ottla.model.types import TopicPartition
from ottla.protocol.messages.metadata import MetadataResponsePartition

Value = TypeVar("Value")

SETTINGS = ClientSettings(client_id="ottla-testing", deadline_ms=15_000, request_ms_max=10_000)
POLL_MS = 5_000
POLL_SECONDS = 0.02


class Client:
    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def create_topic(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str],
        replication_factor: int = BROKER_DEFAULT,
    ) -> None:
        self._run(
            lambda cluster: Admin(cluster).create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
            )
        )

    def delete_topic(self, name: str) -> None:
        self._run(lambda cluster: Admin(cluster).delete_topic(name))

    def topics(self) -> list[str]:
        described = self._run(lambda cluster: Admin(cluster).describe_topics())
        return [topic.name for topic in described if topic.name and not topic.is_internal]

    def produce(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        partition: int | None,
    ) -> None:
        async def work(cluster: Cluster) -> None:
            async with Producer(cluster) as producer:
                for value in values:
                    await producer.send(
                        topic, value, key, headers=tuple(headers), partition=partition
                    )

        self._run(work)

    def records(self, topic: str) -> list[Message]:
        return self._run(lambda cluster: _read_all(cluster, topic))

    def wait_for(self, topic: str, count: int, timeout: float) -> list[Message]:
        deadline = time.monotonic() + timeout
        while True:
            try:
                records = self.records(topic)
            except UnknownTopic:  # Its producer may create it.
                records = []
            if len(records) >= count:
                return records
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{topic} has {len(records)} records after {timeout:g} s, not {count}"
                )
            time.sleep(POLL_SECONDS)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        found = self._run(lambda cluster: Groups(cluster).offsets(group))
        return {(tp.topic, tp.partition): found[tp].offset for tp in found}

    def lag(self, group: str) -> int:
        async def work(cluster: Cluster) -> int:
            found = await Groups(cluster).offsets(group)
            ends = await find_offsets(cluster, dict.fromkeys(found, LATEST))
            return sum(max(ends[tp].offset - found[tp].offset, 0) for tp in found)

        return self._run(work)

    def partition(self, topic: str, index: int) -> MetadataResponsePartition:
        """Leader and ISR of a partition."""
        (described,) = self._run(lambda cluster: Admin(cluster).describe_topics([topic]))
        return next(found for found in described.partitions if found.partition_index == index)

    def controller(self) -> int:
        """The node whose controller is active."""
        return self._run(lambda cluster: Admin(cluster).quorum()).leader_id

    def _run(self, work: Callable[[Cluster], Awaitable[Value]]) -> Value:
        if not _is_loop_running():
            return run(work, self._bootstrap_servers, SETTINGS)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run, work, self._bootstrap_servers, SETTINGS).result()


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _read_all(cluster: Cluster, topic: str) -> list[Message]:
    """Read each partition from its start to its current end."""
    known = await cluster.topic(topic)
    partitions = [TopicPartition(topic, index) for index in known.partitions]
    starts = await find_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    ends = await find_offsets(cluster, dict.fromkeys(partitions, LATEST))
    reader = Reader(
        cluster, {tp: starts[tp].offset for tp in partitions if starts[tp].offset < ends[tp].offset}
    )
    messages: list[Message] = []
    while reader.positions:
        messages += await reader.poll(POLL_MS)
        for topic_partition, position in list(reader.positions.items()):
            if position >= ends[topic_partition].offset:
                reader.stop(topic_partition)
    in_time = [m for m in messages if m.offset < ends[m.topic_partition].offset]
    return sorted(in_time, key=lambda message: (message.partition, message.offset))
