"""Short ways to produce and consume with confluent-kafka, by partition and without a group."""

import functools
import time
from collections.abc import Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.settling import settle

SECONDS_MAX = 20


@functools.cache
def admin(bootstrap: str) -> AdminClient:
    """Kept for the session: a client that is collected breaks its futures off."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})


def create(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> None:
    """Create a topic; `config` has underscores for dots."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
    admin(bootstrap).create_topics([new])[topic].result(SECONDS_MAX)
    settle(bootstrap)


def producer(bootstrap: str, **config: object) -> Producer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})


def consumer(bootstrap: str, **config: object) -> Consumer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "no-group-is-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            **settings,
        }
    )


def produce(bootstrap: str, topic: str, values: Iterable[object], **config: object) -> list[int]:
    """Produce all, wait for the answers, and return the offset of each."""
    sender = producer(bootstrap, **config)
    offsets: list[int] = []

    def answered(error: object, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for value in values:
        sender.produce(topic, value, partition=0, on_delivery=answered)
        sender.poll(0)
    assert sender.flush(SECONDS_MAX) == 0, "some records were not answered"
    return offsets


def consume(
    bootstrap: str, topic: str, count: int, partition: int = 0, offset: int = OFFSET_BEGINNING
) -> list[Message]:
    """The next `count` records of one partition."""
    reader = consumer(bootstrap)
    reader.assign([Position(topic, partition, offset)])
    try:
        return take(reader, count)
    finally:
        reader.close()


def take(reader: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count:
        message = reader.poll(0.2)
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        found.append(message)
    return found


def error_of(future: object) -> str:
    """The name of the error that a future of the admin client ends with."""
    try:
        future.result(SECONDS_MAX)  # type: ignore[attr-defined]
    except KafkaException as failure:
        return str(failure.args[0].name())
    return "NO_ERROR"
