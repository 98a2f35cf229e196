"""Where partitions begin and end, and which offset a time corresponds to."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import check
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.protocol.messages import list_offsets as wire

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
CONSUMER = -1  # The replica id of whoever is none.


class FoundOffset(NamedTuple):
    offset: Offset  # -1 if no record is as young as the time asked for.
    timestamp_ms: int
    leader_epoch: int = -1  # LATEST: the epoch of the leader that answered.


async def find_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    *,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, FoundOffset]:
    """For each partition the first offset at a time (or EARLIEST, LATEST, MAX_TIMESTAMP)."""

    async def attempt() -> dict[TopicPartition, FoundOffset]:
        by_leader: dict[NodeId, dict[TopicPartition, int]] = defaultdict(dict)
        for topic_partition, time_ms in times.items():
            by_leader[await cluster.leader_id(topic_partition)][topic_partition] = time_ms
        found: dict[TopicPartition, FoundOffset] = {}
        for node_id, wanted in by_leader.items():
            found |= await _ask(await cluster.broker(node_id), cluster, wanted, isolation)
        return found

    return await cluster.retrying(attempt)


async def _ask(
    connection: Connection, cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation: int
) -> dict[TopicPartition, FoundOffset]:
    topics: dict[str, wire.ListOffsetsTopic] = {}
    for (topic, partition), time_ms in wanted.items():
        topics.setdefault(topic, wire.ListOffsetsTopic(topic)).partitions.append(
            wire.ListOffsetsPartition(partition, timestamp=time_ms)
        )
    answer = await connection.ask(
        wire.Request(
            CONSUMER, isolation, list(topics.values()), timeout_ms=cluster.settings.request_ms_max
        ),
        wire.Response,
        timeout_ms=cluster.settings.request_ms_max,
    )
    found: dict[TopicPartition, FoundOffset] = {}
    for answered in answer.topics:
        for result in answered.partitions:
            topic_partition = TopicPartition(answered.name, result.partition_index)
            if result.error_code:
                cluster.forget(answered.name)
            check(result.error_code, about=str(topic_partition))
            found[topic_partition] = FoundOffset(
                result.offset, result.timestamp, result.leader_epoch
            )
    return found
