"""Steps about records: Produce and Fetch."""

from collections.abc import Iterable
from typing import Any

from ottla.protocol.messages import (
    fetch,
    init_producer_id,
    produce,
)
from tests.conformance import answer_batches as batches
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import World

STEPS = Steps()
step = STEPS.add


# Produce.


def produced(
    world: World, version: int, *batches_by_topic: tuple[str, int, bytes | None], acks: int = -1
) -> Any:  # noqa: ANN401
    return produce.Request(
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            produce.TopicProduceData(
                name=topic,
                topic_id=world.topic_id(topic) if version >= 13 else bytes(16),
                partition_data=[produce.PartitionProduceData(partition, data)],
            )
            for topic, partition, data in batches_by_topic
        ],
    )


@step("Produce appends", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("log", 0, batches.plain(3)), acks=-1 if version % 2 else 1)


@step("Produce to what does not exist", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("no-such-topic", 0, batches.plain(1)))


@step("Produce to a partition that does not exist", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("log", 7, batches.plain(1)))


@step("Produce with acks that do not exist", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("log", 0, batches.plain(1)), acks=2)


@step("Produce above the topic's limit", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("small", 0, batches.plain(1, size=1000)))


@step("Produce far ahead of time", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("strict", 0, batches.plain(1, timestamp=10**13)))


for codec, number in {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}.items():

    @step(f"Produce with {codec}", (3, 6, 7, 13))
    def _(world: World, version: int, number: int = number) -> Any:  # noqa: ANN401
        return produced(world, version, ("log", 0, batches.plain(2, codec=number)))


for kind, data in batches.BAD.items():

    @step(f"Produce {kind}", (3, 8, 13))
    def _(world: World, version: int, data: bytes | None = data) -> Any:  # noqa: ANN401
        return produced(world, version, ("bad", 0, data))


@step("Produce without a key to a compacted topic", (3, 8, 13))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("compacted", 0, batches.plain(2)))


for kind, data in batches.IDEMPOTENT:

    @step(f"Produce, idempotent: {kind}", [9])
    def _(world: World, version: int, data: bytes = data) -> Any:  # noqa: ANN401
        return produced(world, version, ("idempotent", 0, data))


@step("InitProducerId", range(6))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return init_producer_id.Request(transactional_id=None, transaction_timeout_ms=60_000)


# Fetch.


def fetched(
    world: World,
    version: int,
    topic: str,
    offset: int,
    *,
    partitions: Iterable[int] = (0,),
    bytes_max: int = 1 << 20,
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    return fetch.Request(
        max_wait_ms=more.pop("max_wait_ms", 100),
        min_bytes=more.pop("min_bytes", 0),
        max_bytes=1 << 24,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                topic_id=world.topic_id(topic) if version >= 13 else bytes(16),
                partitions=[
                    fetch.FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=bytes_max,
                        current_leader_epoch=more.get("epoch", -1),
                    )
                    for partition in partitions
                ],
            )
        ],
        **{key: value for key, value in more.items() if key != "epoch"},
    )


@step("Fetch from the start", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 0)


@step("Fetch within a batch, one byte at most", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 4, bytes_max=1)


@step("Fetch at the end", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "small", 0, min_bytes=1, max_wait_ms=50)


@step("Fetch out of range", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 100_000)


@step("Fetch from what does not exist", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "no-such-topic", 0)


@step("Fetch from a partition that does not exist", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 0, partitions=[7])


@step("Fetch with a later leader epoch", range(9, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 0, epoch=5)


@step("Fetch opens a session", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "sessions", 0, partitions=[0, 1], session_epoch=0)


def in_session(world: World, version: int, epoch: int) -> Any:  # noqa: ANN401
    session_id = world.answers["Fetch opens a session", version].session_id
    return fetch.Request(
        max_wait_ms=20, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=[]
    )


@step("Fetch in a session without news", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return in_session(world, version, 1)


@step("Produce news for the sessions", [9])
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("sessions", 1, batches.plain(1)))


@step("Fetch in a session with news", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return in_session(world, version, 2)


@step("Fetch in a session with a wrong epoch", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return in_session(world, version, 9)


@step("Fetch in a session that does not exist", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetch.Request(max_wait_ms=20, min_bytes=0, session_id=1, session_epoch=1, topics=[])
