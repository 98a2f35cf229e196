"""Produce, consume and administer with kafka-python."""

import time
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import (
    InvalidTopicError,
    MessageSizeTooLargeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.conformance.settling import settle

SECONDS_MAX = 20


@pytest.fixture(scope="module")
def admin(broker: object) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)  # type: ignore[attr-defined]
    yield client
    client.close()


def create(admin: KafkaAdminClient, topic: str, partitions: int = 1, **config: str) -> None:
    configs = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics(
        {topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}}
    )
    settle(admin.config["bootstrap_servers"])


def produce(bootstrap: str, topic: str, values: list[bytes], **options: object) -> list[int]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, **options)
    try:
        futures = [producer.send(topic, value, partition=0) for value in values]
        return [future.get(SECONDS_MAX).offset for future in futures]
    finally:
        producer.close()


def consume(bootstrap: str, topic: str, count: int, **options: object) -> list:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None, **options
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return take(consumer, count)
    finally:
        consumer.close()


def take(consumer: KafkaConsumer, count: int) -> list:
    found: list = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        for records in consumer.poll(timeout_ms=200).values():
            found += records
    return found


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_come_back_with_each_acks(
    bootstrap: str, topic: str, admin: KafkaAdminClient, acks: object
) -> None:
    create(admin, topic)
    sent = [b"%d" % n for n in range(100)]
    produce(bootstrap, topic, sent, acks=acks, enable_idempotence=False)
    assert [record.value for record in consume(bootstrap, topic, 100)] == sent


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_each_codec_passes_through(
    bootstrap: str, topic: str, admin: KafkaAdminClient, codec: str
) -> None:
    create(admin, topic)
    sent = [b"compress me %d" % n for n in range(300)]
    produce(bootstrap, topic, sent, compression_type=codec)
    assert [record.value for record in consume(bootstrap, topic, 300)] == sent


def test_keys_headers_timestamps_and_nulls_survive(
    bootstrap: str, topic: str, admin: KafkaAdminClient
) -> None:
    create(admin, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(
        topic, b"v", b"k", headers=[("h", b"1")], partition=0, timestamp_ms=1_600_000_000_000
    )
    producer.send(topic, None, b"gone", partition=0)
    producer.flush(SECONDS_MAX)
    producer.close()
    first, second = consume(bootstrap, topic, 2)
    assert (first.key, first.value, first.timestamp) == (b"k", b"v", 1_600_000_000_000)
    assert list(first.headers) == [("h", b"1")]
    assert (second.key, second.value) == (b"gone", None)


def test_an_idempotent_producer_is_served(
    bootstrap: str, topic: str, admin: KafkaAdminClient
) -> None:
    create(admin, topic)
    offsets = produce(
        bootstrap, topic, [b"%d" % n for n in range(500)], enable_idempotence=True, batch_size=200
    )
    assert offsets == list(range(500))


def test_a_consumer_without_a_group_subscribes(
    bootstrap: str, topic: str, admin: KafkaAdminClient
) -> None:
    create(admin, topic, partitions=3)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(30):
        producer.send(topic, b"%d" % number, partition=number % 3)
    producer.flush(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
    )
    assert sorted(int(record.value) for record in take(consumer, 30)) == list(range(30))
    consumer.close()


def test_offsets_by_time_and_ends(bootstrap: str, topic: str, admin: KafkaAdminClient) -> None:
    create(admin, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(5):
        producer.send(topic, b"v", partition=0, timestamp_ms=1_600_000_000_000 + number * 10)
    producer.flush(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    here = TopicPartition(topic, 0)
    found = consumer.offsets_for_times({here: 1_600_000_000_015})[here]
    assert (found.offset, found.timestamp) == (2, 1_600_000_000_020)
    assert consumer.offsets_for_times({here: 1_600_000_000_041})[here] is None
    assert consumer.beginning_offsets([here]) == {here: 0}
    assert consumer.end_offsets([here]) == {here: 5}
    consumer.close()


def test_a_large_record_is_refused_by_the_topics_limit(
    bootstrap: str, topic: str, admin: KafkaAdminClient
) -> None:
    create(admin, topic, max_message_bytes="1000")
    with pytest.raises(MessageSizeTooLargeError):
        produce(bootstrap, topic, [b"x" * 2000])


def test_topics_are_listed_described_and_deleted(topic: str, admin: KafkaAdminClient) -> None:
    create(admin, topic, partitions=2)
    assert topic in admin.list_topics()
    (described,) = admin.describe_topics([topic])
    assert described["name"] == topic
    assert len(described["partitions"]) == 2
    with pytest.raises(TopicAlreadyExistsError):
        create(admin, topic)
    admin.delete_topics([topic])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])
    with pytest.raises(InvalidTopicError):
        create(admin, "no good")


def test_the_cluster_and_its_directories_are_described(
    bootstrap: str, topic: str, admin: KafkaAdminClient
) -> None:
    create(admin, topic)
    assert produce(bootstrap, topic, [b"a"]) == [0]
    cluster = admin.describe_cluster()
    assert [node["broker_id"] for node in cluster["brokers"]] == [1]
    assert topic in str(admin.describe_log_dirs())
