"""What survives the end of a broker, clean or not: as seen by stock clients."""

from collections.abc import Callable

import pytest
from confluent_kafka import Message, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.conformance.broker_process import BrokerProcess
from tests.conformance.librdkafka import SECONDS_MAX, consume, create, produce, producer

NewBroker = Callable[..., BrokerProcess]


def describe(bootstrap: str, topic: str) -> tuple[str, int, str]:
    client = AdminClient({"bootstrap.servers": bootstrap})
    described = client.describe_topics(TopicCollection([topic]))[topic].result(SECONDS_MAX)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = client.describe_configs([resource])[resource].result(SECONDS_MAX)
    retention = str(configs["retention.ms"].value)
    return str(described.topic_id), len(described.partitions), retention


def end(broker: BrokerProcess, how: str) -> None:
    if how == "kill":
        broker.kill()
    else:
        broker.stop()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_topics_configs_and_records_survive(new_broker: NewBroker, how: str) -> None:
    broker = new_broker().start()
    create(broker.bootstrap, "kept", partitions=2, retention_ms="123456")
    produce(broker.bootstrap, "kept", [b"%d" % n for n in range(100)], compression_type="zstd")
    before = describe(broker.bootstrap, "kept")
    end(broker, how)
    broker.start()
    assert describe(broker.bootstrap, "kept") == before
    assert produce(broker.bootstrap, "kept", [b"more"]) == [100]
    found = [int(message.value()) for message in consume(broker.bootstrap, "kept", 100)]
    assert found == list(range(100))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_an_idempotent_producer_goes_on_where_it_was(new_broker: NewBroker, how: str) -> None:
    """Its sequence numbers are remembered, so the next batch is neither refused nor doubled."""
    broker = new_broker().start()
    create(broker.bootstrap, "kept")
    offsets: list[int] = []

    def answered(error: object, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    sender = producer(broker.bootstrap, enable_idempotence=True, reconnect_backoff_max_ms=200)
    for round_number in range(3):
        for number in range(10):
            sender.produce(
                "kept", b"%d %d" % (round_number, number), partition=0, on_delivery=answered
            )
        assert sender.flush(SECONDS_MAX) == 0
        if round_number < 2:
            end(broker, how)
            broker.start()
    assert offsets == list(range(30))
    values = [message.value() for message in consume(broker.bootstrap, "kept", 30)]
    assert values == [b"%d %d" % (r, n) for r in range(3) for n in range(10)]
