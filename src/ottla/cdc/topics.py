"""The topics that a tail writes to: made if they are not there, and read to see what they hold."""

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

CONFIGS = {"cleanup.policy": "compact"}  # The topic is the table: the last row of each key stays.
WAIT_MS = 200


class Reached(NamedTuple):
    """How far a partition is written."""

    position: Position
    end_offset: Offset
    numbering: Numbering  # Of the batch that follows.


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
            await _wait_known(cluster, name)
            return True
    return False


async def _wait_known(cluster: Cluster, name: str) -> None:
    """Until a new topic is in the metadata of the broker that is asked; Kafka answers before."""
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
    """How far each partition of a topic is written, by the last record and the last batch.

    Holds only for the owner of the slot. A batch that another tail still writes after this was
    read takes the numbers of the next one, which the broker then refuses.
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
    """All messages that these partitions hold now."""
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
                    last = message  # Also from behind `end`: it belongs to the origin.
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
