"""Produce and Fetch as tests say them, and what their answers hold."""

from typing import Any

from ottla.model.types import Uuid
from ottla.protocol.messages import fetch, produce
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.simulation.world.clock import WALL_START_MS
from tests.unit.broker.serving import World

# ruff: noqa: ANN401  Answers are of any class.


def batch(*values: bytes, at: int = WALL_START_MS, **options: Any) -> bytearray:
    """A batch as a producer sends it."""
    records = [Record(index, at, None, value) for index, value in enumerate(values)]
    return build_batch(records, **options)


def produce_request(
    records: bytes | bytearray | None,
    topic: str | Uuid = "t",
    partition: int = 0,
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
) -> produce.Request:
    """One partition's worth; a topic given as bytes is its id."""
    data = produce.TopicProduceData(
        partition_data=[produce.PartitionProduceData(partition, records)]
    )
    if isinstance(topic, str):
        data.name = topic
    else:
        data.topic_id = topic
    return produce.Request(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def write(
    world: World, *values: bytes, topic: str = "t", partition: int = 0, **options: Any
) -> int:
    """Produce a batch and return its base offset."""
    request = produce_request(batch(*values, at=world.now, **options), topic, partition)
    result = world.client().ask(request, 12).responses[0].partition_responses[0]
    assert result.error_code == 0, result
    return result.base_offset


def fetch_request(
    *partitions: tuple[str | Uuid, int, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    **options: Any,
) -> fetch.Request:
    """Fetch (topic, partition, offset) each; a topic given as bytes is its id."""
    topics: dict[str | Uuid, fetch.FetchTopic] = {}
    for topic, index, offset in partitions:
        named = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
        asked = fetch.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes
        )
        topics.setdefault(topic, fetch.FetchTopic(**named)).partitions.append(asked)
    return fetch.Request(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=list(topics.values()),
        **options,
    )


def values_of(records: Any) -> list[bytes | None]:
    """The values of all whole batches in a fetched piece of log."""
    data, position, values = bytes(records or b""), 0, []
    while position + 61 <= len(data):
        one = Batch(bytearray(data[position:]))
        if position + one.size > len(data):
            break
        one = Batch(bytearray(data[position : position + one.size]))
        values += [record.value for record in read_records(one, 1 << 24)]
        position += one.size
    return values


def only(response: Any) -> Any:
    """The single partition of an answer to Produce, Fetch, ListOffsets ..."""
    topics = response.responses if hasattr(response, "responses") else response.topics
    assert len(topics) == 1, response
    topic = topics[0]
    parts = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
    assert len(parts) == 1, response
    return parts[0]
