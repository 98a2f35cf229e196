"""How far a group is behind: in records, and in the age of the oldest that it has not read."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.metadata import NO_NODE
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.types import Millis, Offset, TopicPartition

LOOK_MS_MAX = 10_000  # For the records at the committed offsets of all partitions.
FETCH_BYTES = 64 * 1024  # One record is enough.


class Lag(NamedTuple):
    """None is what cannot be known: no leader, or no record in time."""

    start_offset: Offset | None = None
    end_offset: Offset | None = None
    records: int | None = None
    ms: Millis | None = None


async def find_lags(
    cluster: Cluster, committed: Mapping[TopicPartition, Offset | None]
) -> dict[TopicPartition, Lag]:
    """The lag of each partition; where nothing is committed, only where it begins and ends."""
    led = await _led(cluster, committed)
    starts = await find_offsets(cluster, dict.fromkeys(led, EARLIEST))
    ends = await find_offsets(cluster, dict.fromkeys(led, LATEST))
    lags = dict.fromkeys(committed, Lag())
    waiting: dict[TopicPartition, Offset] = {}
    for place in led:
        start, end, offset = starts[place].offset, ends[place].offset, committed[place]
        if offset is None:
            lags[place] = Lag(start, end)
            continue
        records = max(end - offset, 0)
        lags[place] = Lag(start, end, records, 0 if records == 0 else None)
        if records:
            waiting[place] = max(offset, start)
    now = cluster.clock.wall()
    for place, timestamp_ms in (await _timestamps(cluster, waiting, lags)).items():
        lags[place] = lags[place]._replace(ms=max(now - timestamp_ms, 0))
    return lags


async def _led(
    cluster: Cluster, committed: Mapping[TopicPartition, Offset | None]
) -> list[TopicPartition]:
    """Those whose topic still exists and that have a leader to ask."""
    names = sorted({place.topic for place in committed})
    if names:
        await cluster.refresh(names)
    found: list[TopicPartition] = []
    for place in committed:
        topic = cluster.metadata.topics.get(place.topic)
        partition = topic.partitions.get(place.partition) if topic is not None else None
        if partition is not None and partition.leader_id != NO_NODE:
            found.append(place)
    return found


async def _timestamps(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, Offset],
    lags: Mapping[TopicPartition, Lag],
) -> dict[TopicPartition, int]:
    """When the record at each offset was written, or the next one there is."""
    found: dict[TopicPartition, int] = {}
    settings = ReaderSettings(wait_ms=0, partition_bytes_max=FETCH_BYTES)
    reader = Reader(cluster, offsets, settings)
    deadline = cluster.clock.monotonic() + LOOK_MS_MAX
    try:
        while reader.positions and (left_ms := deadline - cluster.clock.monotonic()) > 0:
            for message in await reader.poll(min(left_ms, 1_000)):
                if message.topic_partition in reader.positions:
                    found[message.topic_partition] = message.timestamp_ms
                    reader.stop(message.topic_partition)
            for place, position in list(reader.positions.items()):
                end = lags[place].end_offset
                if end is not None and position >= end:
                    found[place] = cluster.clock.wall()  # Nothing but markers: none is waiting.
                    reader.stop(place)
    finally:
        reader.close()
    return {place: timestamp_ms for place, timestamp_ms in found.items() if timestamp_ms >= 0}
