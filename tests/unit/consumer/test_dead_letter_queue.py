"""Dead letters are written, or the error says why not."""

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from ottla.client.message import Message
from ottla.consumer.dead_letter_queue import DeadLetterQueue
from ottla.consumer.dead_letters import read_dead_letter
from ottla.consumer.errors import CannotDeadLetter
from ottla.consumer.intake import as_message
from ottla.consumer.settings import consumer_config, producer_config
from tests.unit.consumer.mock_cluster import MockCluster

RECORD = Message("orders", 0, 7, 123_456, False, b"k", None, (("own", b"1"),))


def queue(bootstrap: str, **changes: object) -> DeadLetterQueue:
    config = producer_config({"bootstrap.servers": bootstrap}) | changes
    return DeadLetterQueue(config, group="g", handler="h")


def test_write_returns_after_the_dead_letter_is_stored() -> None:
    cluster = MockCluster()
    dead_letters = queue(cluster.bootstrap)
    dead_letters.write("orders.dlq", RECORD, ValueError("bad"))
    dead_letters.close()
    consumer = Consumer(consumer_config(cluster.bootstrap, "reader", {}))
    topic = consumer.list_topics("orders.dlq", timeout=10).topics["orders.dlq"]
    consumer.assign([Place("orders.dlq", index, 0) for index in topic.partitions])
    raw = consumer.poll(10)
    assert raw is not None
    found = as_message(raw)
    assert (found.key, found.value, found.timestamp_ms) == (b"k", None, 123_456)
    letter = read_dead_letter(found)
    assert (letter.topic, letter.offset, letter.error_message) == ("orders", 7, "bad")
    assert letter.headers == RECORD.headers
    consumer.close()


def test_a_dead_letter_that_cannot_be_written_raises() -> None:
    nobody = queue("127.0.0.1:1", **{"message.timeout.ms": 300, "socket.timeout.ms": 200})
    nobody._known.add("orders.dlq")  # Skips the ten seconds of topic creation.
    with pytest.raises(CannotDeadLetter, match="orders-0 at offset 7"):
        nobody.write("orders.dlq", RECORD, ValueError("bad"))
