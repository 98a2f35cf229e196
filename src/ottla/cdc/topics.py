"""The topics that a tail writes: created if missing, and read for their positions."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

from ottla.cdc.numbering import next_epoch, numbering_after
from ottla.cdc.position import NOWHERE, Position, position_in
from ottla.client.admin import BROKER_DEFAULT, Admin, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.errors import Refused
from ottla.client.idempotence import Numbering
from ottla.client.message import Message
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.reader import Reader, ReaderSettings
from ottla.client.unpacking import Origin
from ottla.model.errors import ErrorCode
from ottla.model.types import Offset, TopicPartition

# The topic mirrors the table: the last row of each key is kept.
CONFIGS = {"cleanup.policy": "compact"}
WAIT_MS = 200


class Reached(NamedTuple):
    """Position up to which a partition is written."""

    position: Position
    end_offset: Offset
    numbering: Numbering  # Of the next batch.


async def ensure_topic(
    cluster: Cluster, name: str, partitions: int | None, replication_factor: int | None
) -> bool:
    """Create the topic, compacted, unless it exists; returns whether it was created."""
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
            await _wait_known(cluster, name)
            return True
    return False


async def _wait_known(cluster: Cluster, name: str) -> None:
    """Wait until a new topic is in the broker's metadata; Kafka confirms its creation earlier."""
    deadline = cluster.clock.monotonic() + cluster.settings.deadline_ms
    while True:
        try:
            await cluster.topic(name)
        except UnknownTopic:
            if cluster.clock.monotonic() > deadline:
                raise
            await asyncio.sleep(WAIT_MS / 1000)
        else:
            return


async def is_compacted(cluster: Cluster, name: str) -> bool:
    found = await Admin(cluster).describe_configs(ResourceType.TOPIC, name, ["cleanup.policy"])
    return any("compact" in (config.value or "") for config in found)


async def how_far(
    cluster: Cluster, topic: str, *, in_next_epoch: bool = False
) -> dict[TopicPartition, Reached]:
    """Position of each partition of a topic, from its last record and last batch.

    Valid only for the owner of the slot. A batch that another tail still writes afterwards takes
    the numbers of the next one, which the broker then refuses.
    """
    partitions = [TopicPartition(topic, index) for index in (await cluster.topic(topic)).partitions]
    starts, ends = await _bounds(cluster, partitions)
    found: dict[TopicPartition, Reached] = {}
    for place in partitions:
        last, origin, end = await _last_message(cluster, place, starts[place], ends[place])
        numbering = numbering_after(origin, place, end)
        if in_next_epoch:
            numbering = next_epoch(numbering, place, end)
        position = NOWHERE
        if last is not None:
            where = f"offset {last.offset} of {place.topic}, partition {place.partition},"
            position = position_in(last.headers, where)
        found[place] = Reached(position, end, numbering)
    return found


async def end_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Offset]:
    found = await find_offsets(cluster, dict.fromkeys(partitions, LATEST))
    return {place: item.offset for place, item in found.items()}


async def read_to_end(cluster: Cluster, partitions: list[TopicPartition]) -> AsyncIterator[Message]:
    """All current messages of these partitions."""
    starts, ends = await _bounds(cluster, partitions)
    async for message in _read(cluster, starts, ends):
        yield message


async def _bounds(
    cluster: Cluster, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
    starts = await find_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    return (
        {place: found.offset for place, found in starts.items()},
        await end_offsets(cluster, partitions),
    )


async def _last_message(
    cluster: Cluster, place: TopicPartition, start: Offset, end: Offset
) -> tuple[Message | None, Origin | None, Offset]:
    """The last record, the origin of the last batch, and the end of both, at least at `end`.

    Compaction may have left the last batches without records.
    """
    step = 1
    while True:
        begin = max(start, end - step)
        last: Message | None = None
        origins: dict[TopicPartition, Origin] = {}
        reader = Reader(cluster, {place: begin}, ReaderSettings(wait_ms=WAIT_MS), origins)
        try:
            while reader.positions[place] < end:
                for message in await reader.poll(WAIT_MS):
                    last = message  # Also beyond `end`: it belongs to the origin.
        finally:
            reader.close()
        if last is not None or begin == start:
            return last, origins.get(place), reader.positions[place]
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
