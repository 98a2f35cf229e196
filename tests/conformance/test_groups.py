"""Consumers of three client libraries in groups: joins, leaves, crashes, commits, restarts."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

from tests.conformance.broker_process import BrokerProcess, Flavour

SECONDS_MAX = 30
PARTITIONS = 4


@pytest.fixture(scope="module")
def grouping(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker whose new groups do not wait for more members."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    process = BrokerProcess(flavour, tmp_path_factory.mktemp(flavour.name), settings)
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="module")
def quick_consumers(
    flavour: Flavour, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker whose consumer groups send heartbeats as often as Kafka allows."""
    settings = {
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
    }
    process = BrokerProcess(flavour, tmp_path_factory.mktemp(flavour.name), settings)
    process.start()
    yield process
    process.kill()


@pytest.fixture
def admin(grouping: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": grouping.bootstrap})


@pytest.fixture
def filled(grouping: BrokerProcess, admin: AdminClient, topic: str) -> str:
    """A topic of four partitions with ten records each."""
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    produce(grouping, topic, 10)
    return topic


def produce(broker: BrokerProcess, topic: str, each: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(each * PARTITIONS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(10) == 0


class Member:
    """A librdkafka consumer, and what it was given."""

    def __init__(self, broker: BrokerProcess, group: str, topic: str, **config: object) -> None:
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            "enable.auto.commit": False,
        }
        settings |= {key.replace("_", "."): value for key, value in config.items()}
        self.consumer = Consumer({k: v for k, v in settings.items() if v is not None})
        self.records: list[tuple[int, int]] = []
        self.assignments = 0
        self.consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, _: Consumer, __: list[TopicPartition]) -> None:
        self.assignments += 1

    @property
    def partitions(self) -> set[int]:
        return {one.partition for one in self.consumer.assignment()}

    def poll(self) -> None:
        message = self.consumer.poll(0.1)
        if message is not None and not message.error():
            self.records.append((message.partition(), message.offset()))


def until(condition: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        for member in members:
            member.poll()
        if not members:
            time.sleep(0.1)


def test_two_members_share_the_partitions_and_one_takes_over_from_the_other(
    grouping: BrokerProcess, filled: str
) -> None:
    first = Member(grouping, filled, filled)
    until(lambda: len(first.partitions) == 4, first)
    second = Member(grouping, filled, filled)
    until(lambda: len(first.partitions) == len(second.partitions) == 2, first, second)
    assert first.partitions | second.partitions == {0, 1, 2, 3}
    second.consumer.close()
    until(lambda: len(first.partitions) == 4, first)
    first.consumer.close()


def test_a_group_goes_on_where_it_stopped_even_after_the_broker_was_killed(
    new_broker: Callable[..., BrokerProcess], topic: str
) -> None:
    broker = new_broker({"group.initial.rebalance.delay.ms": "0"}).start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    produce(broker, topic, 10)
    member = Member(broker, topic, topic)
    until(lambda: len(member.records) == 40, member)
    member.consumer.commit(asynchronous=False)
    broker.kill()
    broker.start()
    produce(broker, topic, 1)
    until(lambda: len(member.records) >= 44, member)
    assert sorted(member.records[40:]) == [(index, 10) for index in range(4)]
    member.consumer.commit(asynchronous=False)
    member.consumer.close()
    broker.restart()
    again = Member(broker, topic, topic)
    produce(broker, topic, 1)
    until(lambda: len(again.records) >= 4, again)
    assert sorted(again.records) == [(index, 11) for index in range(4)]
    again.consumer.close()


CRASHING = """
import sys, time
from confluent_kafka import Consumer
bootstrap, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group,
                     "session.timeout.ms": 6000, "heartbeat.interval.ms": 200})
consumer.subscribe([topic])
while True:
    consumer.poll(0.1)
    if consumer.assignment():
        print("assigned", flush=True)
"""


def test_the_partitions_of_a_member_that_was_killed_go_to_the_others(
    grouping: BrokerProcess, filled: str
) -> None:
    command = [sys.executable, "-c", CRASHING, grouping.bootstrap, filled, filled]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == b"assigned\n"
        member = Member(grouping, filled, filled)
        until(lambda: len(member.partitions) == 2, member)
        doomed.kill()
    began = time.monotonic()
    until(lambda: len(member.partitions) == 4, member)
    assert time.monotonic() - began < 15
    member.consumer.close()


def test_a_static_member_that_is_back_gets_its_partitions_without_a_rebalance(
    grouping: BrokerProcess, filled: str
) -> None:
    first = Member(grouping, filled, filled, group_instance_id="one")
    second = Member(grouping, filled, filled, group_instance_id="two")
    until(lambda: len(first.partitions) == len(second.partitions) == 2, first, second)
    assignments, kept = first.assignments, second.partitions
    second.consumer.close()  # A static member does not leave when it is closed.
    back = Member(grouping, filled, filled, group_instance_id="two")
    until(lambda: len(back.partitions) == 2, first, back)
    assert back.partitions == kept
    assert first.assignments == assignments
    back.consumer.close()
    first.consumer.close()


def test_cooperative_members_keep_what_they_have_while_others_join(
    grouping: BrokerProcess, filled: str
) -> None:
    config = {"partition_assignment_strategy": "cooperative-sticky"}
    first = Member(grouping, filled, filled, **config)
    until(lambda: len(first.partitions) == 4, first)
    second = Member(grouping, filled, filled, **config)
    seen: list[int] = []

    def is_shared() -> bool:
        seen.append(len(first.partitions))
        return len(first.partitions) == len(second.partitions) == 2

    until(is_shared, first, second)
    assert min(seen) == 2  # It never had to give up everything.
    first.consumer.close()
    second.consumer.close()


def test_a_commit_of_a_member_that_is_out_is_refused(grouping: BrokerProcess, filled: str) -> None:
    member = Member(grouping, filled, filled, group_instance_id="one")
    until(lambda: len(member.partitions) == 4, member)
    usurper = Member(grouping, filled, filled, group_instance_id="one")
    until(lambda: len(usurper.partitions) == 4, usurper)
    with pytest.raises(KafkaException):
        member.consumer.commit(offsets=[TopicPartition(filled, 0, 5)], asynchronous=False)
    usurper.consumer.commit(offsets=[TopicPartition(filled, 0, 7)], asynchronous=False)
    assert usurper.consumer.committed([TopicPartition(filled, 0)], 10)[0].offset == 7
    usurper.consumer.close()


def test_administrators_see_change_and_delete_a_group(
    grouping: BrokerProcess, admin: AdminClient, filled: str
) -> None:
    member = Member(grouping, filled, filled)
    until(lambda: len(member.records) == 40, member)
    member.consumer.commit(asynchronous=False)
    listed = {g.group_id: g for g in admin.list_consumer_groups().result(10).valid}
    assert listed[filled].state == ConsumerGroupState.STABLE
    described = admin.describe_consumer_groups([filled])[filled].result(10)
    assert described.state == ConsumerGroupState.STABLE
    assert described.partition_assignor == "range"
    assert {p.partition for p in described.members[0].assignment.topic_partitions} == {0, 1, 2, 3}
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([filled])[filled].result(10)
    member.consumer.close()
    wanted = ConsumerGroupTopicPartitions(filled, [TopicPartition(filled, 1, 3)])
    admin.alter_consumer_group_offsets([wanted])[filled].result(10)
    asked = ConsumerGroupTopicPartitions(filled, [TopicPartition(filled, n) for n in range(4)])
    found = admin.list_consumer_group_offsets([asked])[filled].result(10)
    assert [p.offset for p in found.topic_partitions] == [10, 3, 10, 10]
    admin.delete_consumer_groups([filled])[filled].result(10)
    assert filled not in {g.group_id for g in admin.list_consumer_groups().result(10).valid}
    again = admin.list_consumer_group_offsets([asked])[filled].result(10)
    assert {p.offset for p in again.topic_partitions} == {-1001}  # None.


def test_offsets_of_a_deleted_topic_are_gone(
    grouping: BrokerProcess, admin: AdminClient, filled: str
) -> None:
    consumer = Consumer({"bootstrap.servers": grouping.bootstrap, "group.id": filled})
    consumer.commit(offsets=[TopicPartition(filled, 0, 5)], asynchronous=False)
    assert consumer.committed([TopicPartition(filled, 0)], 10)[0].offset == 5
    admin.delete_topics([filled])[filled].result(10)
    admin.create_topics([NewTopic(filled, PARTITIONS, 1)])[filled].result(10)
    until(lambda: consumer.committed([TopicPartition(filled, 0)], 10)[0].offset == -1001)
    consumer.close()


def test_kafka_python_shares_a_topic_and_goes_on_where_it_stopped(
    grouping: BrokerProcess, filled: str
) -> None:
    def new() -> KafkaConsumer:
        return KafkaConsumer(
            filled,
            bootstrap_servers=grouping.bootstrap,
            group_id=filled,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
        )

    first, second = new(), new()
    seen: set[tuple[int, int]] = set()
    deadline = time.monotonic() + SECONDS_MAX
    while len(seen) < 40 or not len(first.assignment()) == len(second.assignment()) == 2:
        assert time.monotonic() < deadline
        for consumer in (first, second):
            for records in consumer.poll(timeout_ms=300).values():
                seen |= {(record.partition, record.offset) for record in records}
    first.commit()
    second.commit()
    first.close()
    second.close()
    produce(grouping, filled, 1)
    last = new()
    fresh: list[int] = []
    while len(fresh) < 4:
        assert time.monotonic() < deadline + SECONDS_MAX
        for records in last.poll(timeout_ms=300).values():
            fresh += [record.offset for record in records]
    assert fresh == [10, 10, 10, 10]
    last.close()


def test_aiokafka_shares_a_topic_and_goes_on_where_it_stopped(
    grouping: BrokerProcess, filled: str
) -> None:
    async def take(consumer: AIOKafkaConsumer, count: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += [(record.partition, record.offset) for record in records]
        return found

    async def scenario() -> None:
        def new() -> AIOKafkaConsumer:
            return AIOKafkaConsumer(
                filled,
                bootstrap_servers=grouping.bootstrap,
                group_id=filled,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=200,
                session_timeout_ms=6000,
            )

        first, second = new(), new()
        await first.start()
        assert len(await take(first, 40)) == 40
        await first.commit()
        await second.start()
        while not len(first.assignment()) == len(second.assignment()) == 2:
            await asyncio.gather(first.getmany(timeout_ms=100), second.getmany(timeout_ms=100))
        await first.stop()
        produce(grouping, filled, 1)
        found: set[tuple[int, int]] = set()  # A rebalance may give it some of them again.
        while len(found) < 4:
            found |= set(await take(second, 1))
        assert found == {(n, 10) for n in range(4)}
        await second.stop()

    asyncio.run(asyncio.wait_for(scenario(), SECONDS_MAX))


def consuming(broker: BrokerProcess, group: str, topic: str, **config: object) -> Member:
    """A member of the new protocol, whose times are the broker's to choose."""
    return Member(
        broker, group, topic, group_protocol="consumer", session_timeout_ms=None,
        heartbeat_interval_ms=None, **config,
    )  # fmt: skip


def test_members_of_the_new_protocol_share_leave_and_go_on_where_they_stopped(
    quick_consumers: BrokerProcess, topic: str
) -> None:
    broker = quick_consumers
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    produce(broker, topic, 10)
    first = consuming(broker, topic, topic)
    until(lambda: len(first.records) == 40, first)
    first.consumer.commit(asynchronous=False)
    second = consuming(broker, topic, topic)
    until(lambda: len(first.partitions) == len(second.partitions) == 2, first, second)
    assert first.partitions | second.partitions == {0, 1, 2, 3}
    described = admin.describe_consumer_groups([topic])[topic].result(10)
    assert len(described.members) == 2
    first.consumer.close()
    until(lambda: len(second.partitions) == 4, second)
    broker.kill()
    broker.start()
    produce(broker, topic, 1)
    until(lambda: len(second.records) >= 4, second)
    assert sorted(set(second.records)) == [(index, 10) for index in range(4)]
    second.consumer.close()


def test_members_of_the_new_protocol_subscribe_by_expression(
    quick_consumers: BrokerProcess, topic: str
) -> None:
    broker = quick_consumers
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    produce(broker, topic, 1)
    member = consuming(broker, topic, f"^{topic[:-1]}.*")
    until(lambda: len(member.records) == 4, member)
    member.consumer.close()
