"""The broker fixtures as their users meet them: with stock clients, and under pytest-xdist."""

import asyncio
import os
import threading
import time

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import kafka
import pytest
from kafka import TopicPartition as KafkaPythonPartition

from ottla.testing import Broker

pytest_plugins = ["pytester"]

VALUES = [f"value {number}".encode() for number in range(50)]


def produce_with_librdkafka(servers: str, topic: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
    )
    failures: list[object] = []
    for value in VALUES:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert failures == [None] * len(VALUES)


def test_confluent_kafka_produces_and_consumes(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic("orders")
    produce_with_librdkafka(ottla_broker.bootstrap_servers, topic)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap_servers,
            "group.id": "no-group-is-joined",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    messages = []
    deadline = time.monotonic() + 30
    while len(messages) < len(VALUES) and time.monotonic() < deadline:
        messages += consumer.consume(len(VALUES), timeout=1)
    consumer.close()
    assert [message.value() for message in messages] == VALUES
    assert [record.value for record in ottla_broker.records(topic)] == VALUES


def test_kafka_python_produces_and_consumes(ottla_broker: Broker) -> None:
    servers = ottla_broker.bootstrap_servers
    topic = ottla_broker.create_topic("orders")
    producer = kafka.KafkaProducer(bootstrap_servers=servers)
    for value in VALUES:
        producer.send(topic, value)
    producer.close(timeout=30)
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, consumer_timeout_ms=20_000)
    consumer.assign([KafkaPythonPartition(topic, 0)])
    consumer.seek_to_beginning()
    values = [next(consumer).value for _ in VALUES]
    consumer.close()
    assert values == VALUES


def test_aiokafka_produces_and_consumes(ottla_broker: Broker) -> None:
    servers = ottla_broker.bootstrap_servers
    topic = ottla_broker.create_topic("orders")

    async def work() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True)
        await producer.start()
        for value in VALUES:
            await producer.send(topic, value)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers)
        await consumer.start()
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        values = [(await consumer.getone()).value for _ in VALUES]
        await consumer.stop()
        return values

    assert asyncio.run(asyncio.wait_for(work(), 30)) == VALUES


def test_a_stock_client_rides_out_what_a_test_does_to_the_broker(ottla_broker: Broker) -> None:
    """An idempotent producer must write each value once, whatever happens to its answers."""
    topic = ottla_broker.create_topic("orders")
    ottla_broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    ottla_broker.lose_answers("Produce", times=2)
    ottla_broker.delay("Produce", 0.2)
    produce_with_librdkafka(ottla_broker.bootstrap_servers, topic)
    assert [record.value for record in ottla_broker.records(topic)] == VALUES


def test_a_stock_client_finds_a_broker_again_that_was_killed() -> None:
    with Broker(process=True) as broker:
        topic = broker.create_topic("orders")
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True}
        )
        for number, value in enumerate(VALUES):
            producer.produce(topic, value)
            if number == len(VALUES) // 2:
                producer.poll(0.1)
                broker.kill()
                broker.start()
        assert producer.flush(30) == 0
        assert [record.value for record in broker.records(topic)] == VALUES


def test_an_error_of_the_admin_reaches_its_user(ottla_broker: Broker) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": ottla_broker.bootstrap_servers})
    ottla_broker.fail("CreateTopics", "POLICY_VIOLATION", message="not on a Sunday")
    (created,) = admin.create_topics([confluent_kafka.admin.NewTopic("topic", 1, 1)]).values()
    with pytest.raises(confluent_kafka.KafkaException, match="not on a Sunday"):
        created.result(30)


def test_committed_offsets_and_lag_of_a_group_are_seen(ottla_broker: Broker) -> None:
    ottla_broker.produce("orders", "a", "b", "c")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap_servers,
            "group.id": "billing",
            "enable.auto.commit": False,
        }
    )
    read = [confluent_kafka.TopicPartition("orders", 0, 2)]
    consumer.commit(offsets=read, asynchronous=False)
    consumer.close()
    assert ottla_broker.committed("billing") == {("orders", 0): 2}
    assert ottla_broker.lag("billing") == 1


def test_many_brokers_at_once_do_not_meet() -> None:
    brokers = [Broker().start() for _ in range(4)]
    assert len({broker.port for broker in brokers}) == 4
    for number, broker in enumerate(brokers):
        broker.produce("topic", str(number))
    for number, broker in enumerate(brokers):
        assert [record.value for record in broker.records("topic")] == [str(number).encode()]
        broker.close()


def test_a_hundred_brokers_leave_no_thread_file_or_descriptor() -> None:
    with Broker() as broker:
        broker.produce("topic", "value")
    before = threading.active_count(), len(os.listdir("/dev/fd"))
    begin = time.monotonic()
    for _ in range(100):
        with Broker() as broker:
            assert broker.topics() == []
    seconds = time.monotonic() - begin
    assert (threading.active_count(), len(os.listdir("/dev/fd"))) == before
    assert seconds < 60, "a broker starts, serves and is gone well within a second"


SUITE = """
    import pytest

    @pytest.mark.parametrize("number", range(4))
    def test_each_test_has_a_broker_of_its_own(ottla_broker, number):
        assert ottla_broker.topics() == []
        ottla_broker.produce("topic", str(number))
        assert [r.value for r in ottla_broker.records("topic")] == [str(number).encode()]

    @pytest.mark.parametrize("number", range(4))
    def test_the_session_has_one_broker_per_worker(ottla_broker_session, number):
        name = ottla_broker_session.create_topic(f"{__name__}-{number}")
        assert name in ottla_broker_session.topics()
"""


def test_workers_of_xdist_have_brokers_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_one=SUITE, test_two=SUITE)
    result = pytester.runpytest_subprocess("-n", "2", "-W", "error")
    result.assert_outcomes(passed=16)
