"""Produce and consume with aiokafka, which speaks the oldest versions of the three."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import MessageSizeTooLargeError

T = TypeVar("T")


def run(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 30))


async def create(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    configs = {key.replace("_", "."): value for key, value in config.items()}
    await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
    await admin.close()


async def produce(bootstrap: str, topic: str, values: list[bytes], **options: object) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        futures = [await producer.send(topic, value, partition=0) for value in values]
        return [(await future).offset for future in futures]


async def consume(bootstrap: str, topic: str, count: int, offset: int = 0) -> list:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    consumer.assign([TopicPartition(topic, 0)])
    await consumer.start()
    try:
        consumer.seek(TopicPartition(topic, 0), offset)
        return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_each_codec_passes_through(bootstrap: str, topic: str, codec: str | None) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        sent = [b"compress me %d" % n for n in range(100)]
        await produce(bootstrap, topic, sent, compression_type=codec)
        assert [record.value for record in await consume(bootstrap, topic, 100)] == sent

    run(scenario())


@pytest.mark.parametrize("acks", [1, "all"])
def test_records_come_back_with_each_acks(bootstrap: str, topic: str, acks: object) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        assert await produce(bootstrap, topic, [b"a", b"b", b"c"], acks=acks) == [0, 1, 2]
        assert [record.value for record in await consume(bootstrap, topic, 2, 1)] == [b"b", b"c"]

    run(scenario())


def test_an_idempotent_producer_is_served(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        sent = [b"%d" % n for n in range(300)]
        offsets = await produce(bootstrap, topic, sent, enable_idempotence=True)
        assert offsets == list(range(300))

    run(scenario())


def test_keys_headers_and_nulls_survive(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(
                topic, b"v", b"k", 0, timestamp_ms=1_600_000_000_000, headers=[("h", b"x")]
            )
            await producer.send_and_wait(topic, None, b"gone", 0)
        first, second = await consume(bootstrap, topic, 2)
        assert (first.key, first.value, first.timestamp) == (b"k", b"v", 1_600_000_000_000)
        assert tuple(first.headers) == (("h", b"x"),)
        assert (second.key, second.value) == (b"gone", None)

    run(scenario())


def test_offsets_are_found_by_time_and_at_the_ends(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for number in range(5):
                await producer.send_and_wait(
                    topic, b"v", partition=0, timestamp_ms=1_600_000_000_000 + number * 10
                )
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        here = TopicPartition(topic, 0)
        consumer.assign([here])
        await consumer.start()
        found = (await consumer.offsets_for_times({here: 1_600_000_000_015}))[here]
        assert (found.offset, found.timestamp) == (2, 1_600_000_000_020)
        assert await consumer.beginning_offsets([here]) == {here: 0}
        assert await consumer.end_offsets([here]) == {here: 5}
        await consumer.stop()

    run(scenario())


def test_a_topic_is_created_by_the_first_produce(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        assert await produce(bootstrap, topic, [b"first"]) == [0]
        assert [record.value for record in await consume(bootstrap, topic, 1)] == [b"first"]

    run(scenario())


def test_a_large_record_is_refused_by_the_topics_limit(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, max_message_bytes="1000")
        with pytest.raises(MessageSizeTooLargeError):
            await produce(bootstrap, topic, [b"x" * 2000])

    run(scenario())
