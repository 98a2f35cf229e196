"""Reads partitions from given offsets on, without a group: nothing is committed or shared.

    reader = Reader(cluster, {TopicPartition("events", 0): 0})
    messages = await reader.poll(wait_ms=1000)

Each node has at most one fetch under way, and it stays under way between two polls: so a quiet
partition never holds up a busy one, and the next answer travels while this one is worked on. A
fetch may wait for long at the broker, so a reader has connections of its own: `close` ends them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import ClientError, RequestTimeout, check
from ottla.client.message import Message
from ottla.client.metadata import Topic
from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.unpacking import Origin, Transactions, unpack
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, Monotonic, NodeId, Offset, TopicPartition, Uuid
from ottla.protocol.messages import fetch as wire

NAMES_VERSION_MAX = 12  # From 13 on, topics are named by their ids.
MIN_BYTES = 1
NEARER_MS_MAX: Millis = 300_000  # Then the leader chooses again.


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    isolation: int = READ_UNCOMMITTED
    wait_ms: Millis = 500  # How long a broker without news keeps a fetch.
    fetch_bytes_max: int = 8 * 1024 * 1024
    partition_bytes_max: int = 1024 * 1024
    rack: str = ""  # A leader may name a replica there, which is read instead (KIP-392).


@dataclass(slots=True)
class Fetching:
    """A fetch under way."""

    connection: Connection
    future: "asyncio.Future[wire.Response]"
    offsets: dict[TopicPartition, Offset]
    names: dict[Uuid, str]
    deadline: Monotonic


class Reader:
    def __init__(
        self,
        cluster: Cluster,
        offsets: Mapping[TopicPartition, Offset],
        settings: ReaderSettings | None = None,
        origins: dict[TopicPartition, Origin] | None = None,
    ) -> None:
        """`origins` is told of the last batch that was read of each partition."""
        self.positions = dict(offsets)  # The next offset of each partition that is still read.
        self.settings = settings or ReaderSettings()
        self._cluster = cluster
        self._origins = origins
        self._fetching: dict[NodeId, Fetching] = {}
        # Replicas in this reader's rack, and until when each is read instead of the leader.
        self._nearer: dict[TopicPartition, tuple[NodeId, Monotonic]] = {}
        self._failing_since: Monotonic | None = None
        self._failures = 0

    def stop(self, topic_partition: TopicPartition) -> None:
        """Read no more of it; what is under way is dropped when it comes."""
        del self.positions[topic_partition]

    def close(self) -> None:
        """End the reader's own connections."""
        self._cluster.close_lane(self)

    async def poll(self, wait_ms: Millis) -> list[Message]:
        """The messages that came, in order per partition; none if none came in time."""
        clock = self._cluster.clock
        deadline = clock.monotonic() + wait_ms
        while self.positions:
            try:
                await self._send_fetches()
                left_ms = deadline - clock.monotonic()
                messages = await self._receive(max(left_ms, 0))
            except ClientError as failure:
                await self._recover(failure)
                continue
            if messages or clock.monotonic() >= deadline:
                return messages
        return []

    async def _send_fetches(self) -> None:
        under_way = {tp for fetching in self._fetching.values() for tp in fetching.offsets}
        by_node: dict[NodeId, list[TopicPartition]] = defaultdict(list)
        for topic_partition in self.positions:
            if topic_partition not in under_way:
                by_node[await self._replica_of(topic_partition)].append(topic_partition)
        for node_id, partitions in by_node.items():
            if node_id not in self._fetching:
                self._fetching[node_id] = await self._send_fetch(node_id, partitions)

    async def _replica_of(self, topic_partition: TopicPartition) -> NodeId:
        """The replica to be read: the leader, unless the leader has named a nearer one."""
        nearer, until = self._nearer.get(topic_partition, (None, 0))
        if nearer is not None and self._cluster.clock.monotonic() < until:
            return nearer
        return await self._cluster.leader_id(topic_partition)

    def _forget(self, topic_partition: TopicPartition) -> None:
        """Another may lead it soon, and the nearer replica may be none any more."""
        self._nearer.pop(topic_partition, None)
        self._cluster.forget(topic_partition.topic)

    async def _send_fetch(self, node_id: NodeId, partitions: list[TopicPartition]) -> Fetching:
        connection = await self._connect(node_id, partitions)
        topics: dict[str, wire.FetchTopic] = {}
        names: dict[Uuid, str] = {}
        has_ids = True
        for topic_partition in partitions:
            known = await self._cluster.topic(topic_partition.topic)
            has_ids = has_ids and known.has_id
            names[known.id] = known.name
            topics.setdefault(known.name, wire.FetchTopic(known.name, known.id)).partitions.append(
                wire.FetchPartition(
                    topic_partition.partition,
                    current_leader_epoch=self._epoch_of(known, topic_partition.partition),
                    fetch_offset=self.positions[topic_partition],
                    partition_max_bytes=self.settings.partition_bytes_max,
                )
            )
        request = wire.Request(
            max_wait_ms=self.settings.wait_ms,
            min_bytes=MIN_BYTES,
            max_bytes=self.settings.fetch_bytes_max,
            isolation_level=self.settings.isolation,
            topics=list(topics.values()),
            rack_id=self.settings.rack,
        )
        version = connection.version_for(wire.Request, None if has_ids else NAMES_VERSION_MAX)
        patience_ms = self.settings.wait_ms + self._cluster.settings.request_ms_max
        return Fetching(
            connection,
            connection.send(request, wire.Response, version=version),
            {tp: self.positions[tp] for tp in partitions},
            names,
            Monotonic(self._cluster.clock.monotonic() + patience_ms),
        )

    def _epoch_of(self, topic: Topic, partition: int) -> int:
        """Unless it is told, a replica that leads no more may say that we are out of its range."""
        return topic.leader_epoch(partition)

    async def _connect(self, node_id: NodeId, partitions: list[TopicPartition]) -> Connection:
        try:
            return await self._cluster.broker(node_id, lane=self)
        except ClientError:
            for topic_partition in partitions:
                self._forget(topic_partition)
            raise

    async def _receive(self, wait_ms: Millis) -> list[Message]:
        """Wait for an answer, and take every one that is there."""
        futures = [fetching.future for fetching in self._fetching.values()]
        done, _ = await asyncio.wait(
            futures, timeout=wait_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        messages: list[Message] = []
        failures: list[ClientError] = []
        now = self._cluster.clock.monotonic()
        for node_id, fetching in list(self._fetching.items()):
            if fetching.future.done():
                del self._fetching[node_id]
                messages += self._take(fetching, failures)
            elif now > fetching.deadline:
                fetching.connection.close()
                failures.append(
                    RequestTimeout(f"{fetching.connection.address} did not answer a fetch")
                )
        if failures and not messages:
            raise failures[0]  # Else it shows again after the messages that did come.
        if done and not failures:
            self._failing_since, self._failures = None, 0
        return messages

    def _take(self, fetching: Fetching, failures: list[ClientError]) -> list[Message]:
        messages: list[Message] = []
        try:
            answer = fetching.future.result()
            check(answer.error_code, about=str(fetching.connection.address))
        except ClientError as failure:
            for topic_partition in fetching.offsets:
                self._forget(topic_partition)
            failures.append(failure)
            return messages
        for topic in answer.responses:
            name = topic.topic or fetching.names.get(topic.topic_id, "")
            for result in topic.partitions:
                topic_partition = TopicPartition(name, result.partition_index)
                # A reader may have stopped, or been moved, while the answer was on its way.
                asked = fetching.offsets.get(topic_partition)
                if asked is not None and self.positions.get(topic_partition) == asked:
                    try:
                        messages += self._take_partition(topic_partition, result)
                    except ClientError as failure:
                        failures.append(failure)
        return messages

    def _take_partition(
        self, topic_partition: TopicPartition, result: wire.PartitionData
    ) -> list[Message]:
        offset = self.positions[topic_partition]
        if result.error_code:
            code = result.error_code
            if code == ErrorCode.OFFSET_OUT_OF_RANGE and topic_partition in self._nearer:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # Only the leader knows the range.
            self._forget(topic_partition)
            check(code, about=f"{topic_partition} at offset {offset}")
        if result.preferred_read_replica >= 0:
            until = Monotonic(self._cluster.clock.monotonic() + NEARER_MS_MAX)
            self._nearer[topic_partition] = NodeId(result.preferred_read_replica), until
            return []
        transactions = None
        if self.settings.isolation == READ_COMMITTED:
            transactions = Transactions(
                (item.producer_id, item.first_offset) for item in result.aborted_transactions or ()
            )
        messages, self.positions[topic_partition] = unpack(
            topic_partition,
            result.records,
            offset=offset,
            transactions=transactions,
            origins=self._origins,
        )
        return messages

    async def _recover(self, failure: ClientError) -> None:
        """Pause and go on, unless the failure is for good or has lasted too long."""
        now = self._cluster.clock.monotonic()
        self._failing_since = now if self._failing_since is None else self._failing_since
        is_too_late = now - self._failing_since > self._cluster.settings.deadline_ms
        if not failure.is_retriable or is_too_late:
            raise failure
        self._cluster.on_trouble(failure)
        await asyncio.sleep(self._cluster.backoff_ms(self._failures) / 1000)
        self._failures += 1
