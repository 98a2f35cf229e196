"""The topics that a tail writes to: made if they are not there, and read to see what they hold."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from ottla.cdc.position import NOWHERE, Position, position_in
from ottla.client.admin import BROKER_DEFAULT, Admin, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.errors import Refused
from ottla.client.message import Message
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.errors import ErrorCode
from ottla.model.types import Offset, TopicPartition

CONFIGS = {"cleanup.policy": "compact"}  # The topic is the table: the last row of each key stays.
WAIT_MS = 200
SETTLED_MS = 100  # What a killed tail had sent may still arrive.


async def ensure_topic(
    cluster: Cluster, name: str, partitions: int | None, replication_factor: int | None
) -> bool:
    """Make the topic, compacted, unless it is there; whether it was made."""
    try:
        await cluster.topic(name)
    except UnknownTopic:
        try:
            await Admin(cluster).create_topic(
                name,
                partitions=partitions or BROKER_DEFAULT,
                replication_factor=replication_factor or BROKER_DEFAULT,
                configs=CONFIGS,
            )
        except Refused as refused:
            if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        else:
            return True
    return False


async def is_compacted(cluster: Cluster, name: str) -> bool:
    found = await Admin(cluster).describe_configs(ResourceType.TOPIC, name, ["cleanup.policy"])
    return any("compact" in (config.value or "") for config in found)


async def last_positions(cluster: Cluster, topic: str) -> dict[TopicPartition, Position]:
    """How far each partition has been written."""
    partitions = [TopicPartition(topic, index) for index in (await cluster.topic(topic)).partitions]
    starts, ends = await _bounds(cluster, partitions)
    if any(ends[place] > starts[place] for place in partitions):
        before: dict[TopicPartition, Offset] = {}
        while before != ends:
            await asyncio.sleep(SETTLED_MS / 1000)
            before = ends
            starts, ends = await _bounds(cluster, partitions)
    positions: dict[TopicPartition, Position] = {}
    for place in partitions:
        message = await _last_message(cluster, place, starts[place], ends[place])
        positions[place] = NOWHERE
        if message is not None:
            where = f"offset {message.offset} of {place.topic}, partition {place.partition},"
            positions[place] = position_in(message.headers, where)
    return positions


async def read_to_end(cluster: Cluster, partitions: list[TopicPartition]) -> AsyncIterator[Message]:
    """All messages that these partitions hold now."""
    starts, ends = await _bounds(cluster, partitions)
    async for message in _read(cluster, starts, ends):
        yield message


async def _bounds(
    cluster: Cluster, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
    starts = await find_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    ends = await find_offsets(cluster, dict.fromkeys(partitions, LATEST))
    return (
        {place: found.offset for place, found in starts.items()},
        {place: found.offset for place, found in ends.items()},
    )


async def _last_message(
    cluster: Cluster, place: TopicPartition, start: Offset, end: Offset
) -> Message | None:
    """The last record there is; it may not lie at the end, where compaction took some away."""
    step = 1
    while True:
        begin = max(start, end - step)
        last: Message | None = None
        async for message in _read(cluster, {place: begin}, {place: end}):
            last = message
        if last is not None or begin == start:
            return last
        step *= 100


async def _read(
    cluster: Cluster,
    starts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
) -> AsyncIterator[Message]:
    wanted = {place: start for place, start in starts.items() if start < ends[place]}
    reader = Reader(cluster, wanted, ReaderSettings(wait_ms=WAIT_MS))
    try:
        while reader.positions:
            for message in await reader.poll(WAIT_MS):
                if message.offset < ends[message.topic_partition]:
                    yield message
            for place in [p for p, at in reader.positions.items() if at >= ends[p]]:
                reader.stop(place)
    finally:
        reader.close()
