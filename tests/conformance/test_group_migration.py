"""Groups in use that go over to the new protocol and back, member by member, as records flow.

Both kinds of members are in one group meanwhile: librdkafka with either protocol, and kafka-python
with the classic one. Every record is handled, and nobody begins anew: offsets are kept.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from ottla.protocol.messages import list_groups
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess, Flavour, Ottla
from tests.conformance.librdkafka import create
from tests.conformance.raw import Connection
from tests.conformance.test_groups import PARTITIONS, Member

SECONDS_MAX = 60
# Longer than a broker is away: whose session ends meanwhile joins as somebody else, and what the
# member of before had stays its own until the coordinator, too, finds it gone.
SESSION_MS = 30_000
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
}
NewBroker = Callable[..., BrokerProcess]


class Reader(Protocol):
    records: list[tuple[int, int]]

    @property
    def partitions(self) -> set[int]: ...

    def poll(self) -> None: ...
    def close(self) -> None: ...


class Confluent(Member):
    """Commits what it has handled, one record at a time."""

    def __init__(self, broker: BrokerProcess, group: str, protocol: str, **config: object) -> None:
        config |= {"session_timeout_ms": SESSION_MS, "reconnect_backoff_max_ms": 500}
        if protocol == "consumer":
            config |= {"session_timeout_ms": None, "heartbeat_interval_ms": None}
        super().__init__(broker, group, group, group_protocol=protocol, **config)

    def poll(self) -> None:
        before = len(self.records)
        super().poll()
        if len(self.records) > before:
            self.consumer.commit(asynchronous=True)

    def close(self) -> None:
        self.consumer.close()


class KafkaPython:
    """In a thread of its own: it begins anew if a join ends while nobody polls."""

    def __init__(self, broker: BrokerProcess, group: str) -> None:
        self.records: list[tuple[int, int]] = []
        self.partitions: set[int] = set()
        self._topic = group
        self._consumer = KafkaConsumer(
            group,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=200,
            reconnect_backoff_max_ms=500,
            max_poll_records=1,
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def poll(self) -> None:
        time.sleep(0.05)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close(autocommit=False)

    def _run(self) -> None:
        while not self._is_over.is_set():
            with suppress(KafkaError):  # While the broker is away, `poll` may say so.
                for found in self._consumer.poll(timeout_ms=500).values():
                    for record in found:
                        self._handle(record.partition, record.offset)
            self.partitions = {one.partition for one in self._consumer.assignment()}

    def _handle(self, partition: int, offset: int) -> None:
        self.records.append((partition, offset))
        position = OffsetAndMetadata(offset + 1, "", -1)
        with suppress(KafkaError):  # Else whoever has the partition then reads it again.
            self._consumer.commit({TopicPartition(self._topic, partition): position})


class Flow:
    """Records that keep coming while the group changes."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.sent = Counter[int]()
        self._is_over = threading.Event()
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1})
        self._topic = topic
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(0.02):
            number += 1
            self._producer.produce(
                self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._done
            )
            self._producer.poll(0)

    def _done(self, error: object, message: object) -> None:
        assert error is None, error
        partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]
        self.sent[partition] = max(self.sent[partition], offset + 1)

    @contextmanager
    def flowing(self) -> Iterator["Flow"]:
        self._thread.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(30) == 0


class Group:
    """The members that live, and all that was ever handled."""

    def __init__(self, broker: BrokerProcess, name: str) -> None:
        self.broker, self.name = broker, name
        self.members: list[Reader] = []
        self.gone: list[Reader] = []

    def add(self, member: Reader) -> Reader:
        self.members.append(member)
        self.until_shared()
        return member

    def remove(self, member: Reader) -> None:
        self.members.remove(member)
        member.close()
        self.gone.append(member)

    def poll(self) -> None:
        for member in self.members:
            member.poll()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            owned = [member.partitions for member in self.members]
            assert time.monotonic() < deadline, f"not in time: {owned}"
            self.poll()

    def until_shared(self) -> None:
        """Every partition has one owner, and every member about as much as the others."""

        def is_shared() -> bool:
            owned = [index for member in self.members for index in member.partitions]
            sizes = [len(member.partitions) for member in self.members]
            return sorted(owned) == list(range(PARTITIONS)) and max(sizes) - min(sizes) <= 1

        self.until(is_shared)

    def until_all_read_on(self) -> None:
        before = {id(member): len(member.records) for member in self.members}
        self.until(lambda: all(len(m.records) > before[id(m)] + 5 for m in self.members))

    @property
    def handled(self) -> Counter[tuple[int, int]]:
        return Counter(one for member in (*self.members, *self.gone) for one in member.records)

    def until_all_handled(self, flow: Flow) -> None:
        flow.stop()
        wanted = {(index, offset) for index, end in flow.sent.items() for offset in range(end)}
        self.until(lambda: wanted <= set(self.handled))
        twice = sum(count - 1 for count in self.handled.values())
        assert twice <= len(wanted) // 4, "only what was not committed yet is read again"

    @property
    def kind(self) -> str:
        """Of the group; a broker that still loads it does not know."""
        kinds: dict[str, str] = {}
        deadline = time.monotonic() + SECONDS_MAX
        while self.name not in kinds and time.monotonic() < deadline:
            with Connection(self.broker.bootstrap) as connection:
                answer = connection.ask(list_groups.Request(), 5)
            kinds = {one.group_id: one.group_type for one in answer.groups}
        return kinds[self.name]


@pytest.fixture
def migrating(new_broker: NewBroker, topic: str) -> Iterator[Group]:
    broker = new_broker(SETTINGS).start()
    create(broker.bootstrap, topic, PARTITIONS)
    group = Group(broker, topic)
    yield group
    # First those that wait for the rebalances which nobody polls any more.
    for member in sorted(group.members, key=lambda one: not isinstance(one, KafkaPython)):
        group.remove(member)


def old_confluent(group: Group) -> Reader:
    return Confluent(group.broker, group.name, "classic")


def cooperative(group: Group) -> Reader:
    strategy = "cooperative-sticky"
    return Confluent(group.broker, group.name, "classic", partition_assignment_strategy=strategy)


def kafka_python(group: Group) -> Reader:
    return KafkaPython(group.broker, group.name)


def new_confluent(group: Group) -> Confluent:
    return Confluent(group.broker, group.name, "consumer")


@pytest.mark.parametrize("old", [old_confluent, kafka_python])
def test_a_rolling_upgrade_and_a_rolling_downgrade_lose_nothing(
    migrating: Group, old: Callable[[Group], Reader]
) -> None:
    group = migrating
    with Flow(group.broker, group.name).flowing() as flow:
        first = [group.add(old(group)) for _ in range(2)]
        assert group.kind == "classic"
        new = []
        for member in first:
            new.append(group.add(new_confluent(group)))
            assert group.kind == "consumer"
            group.remove(member)
            group.until_shared()
        assert group.kind == "consumer"
        for number, member in enumerate(new):
            group.add(old(group))
            assert group.kind == "consumer"
            group.remove(member)
            group.until_shared()
            assert group.kind == ("consumer" if number == 0 else "classic")
        group.until_all_handled(flow)


def test_cooperative_members_take_over_from_new_ones(migrating: Group) -> None:
    group = migrating
    with Flow(group.broker, group.name).flowing() as flow:
        new = [group.add(new_confluent(group)) for _ in range(2)]
        for member in new:
            group.add(cooperative(group))
            group.remove(member)
            group.until_shared()
        assert group.kind == "classic"
        group.until_all_handled(flow)


def test_an_assignor_with_data_of_its_own_keeps_the_group_classic(migrating: Group) -> None:
    """As in Apache Kafka: librdkafka's cooperative assignor leaves notes in each assignment."""
    group = migrating
    for _ in range(2):
        group.add(cooperative(group))
    new = new_confluent(group)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        error = None
        while error is None:
            assert time.monotonic() < deadline, "it was not refused"
            group.poll()
            message = new.consumer.poll(0.1)
            error = message.error() if message is not None else None
        assert error.name() in ("GROUP_ID_NOT_FOUND", "_FATAL")
    finally:
        new.close()
    assert group.kind == "classic"
    group.until_shared()


def test_a_broker_that_is_killed_in_the_middle_goes_on_with_both_kinds(migrating: Group) -> None:
    group = migrating
    with Flow(group.broker, group.name).flowing() as flow:
        old = group.add(old_confluent(group)), group.add(kafka_python(group))
        new = new_confluent(group)
        group.members.append(new)
        group.until(lambda: group.kind == "consumer")
        crash(group)  # Just upgraded: nobody has given anything up yet.
        group.until_shared()
        crash(group)  # Both kinds, at rest.
        group.until_shared()
        group.until_all_read_on()  # Who has no connection cannot say that it leaves.
        assert group.kind == "consumer"
        group.remove(new)
        group.until(lambda: group.kind == "classic")  # A client does not wait for that.
        crash(group)  # Just downgraded: what the new one had belongs to nobody.
        if group.broker.flavour.name == "kafka":
            group.add(old_confluent(group))  # And in Apache Kafka that stays so until one joins.
        group.until_shared()
        assert group.kind == "classic"
        for member in old:
            assert member.partitions
        group.until_all_handled(flow)


def crash(group: Group) -> None:
    group.broker.kill()
    group.broker.start()


def test_empty_groups_of_either_kind_give_way_and_keep_their_offsets(migrating: Group) -> None:
    group = migrating
    with Flow(group.broker, group.name).flowing() as flow:
        for make, kind in (
            (old_confluent, "classic"),
            (new_confluent, "consumer"),
            (kafka_python, "classic"),
        ):
            member = group.add(make(group))
            group.until(lambda member=member: len(member.records) > 20)  # type: ignore[misc]
            assert group.kind == kind
            group.remove(member)
        group.add(new_confluent(group))
        group.until_all_handled(flow)


@pytest.mark.slow
def test_a_group_of_both_kinds_moves_between_ottla_and_kafka(
    flavour: Flavour, tmp_path: Path, topic: str
) -> None:
    """Each reads what the other wrote of it: of an upgrade, of both kinds, of a downgrade."""
    if flavour.name == "kafka":
        pytest.skip("this one always needs both")
    broker = BrokerProcess(Ottla(), tmp_path / "broker", SETTINGS).start()
    group = Group(broker, topic)
    try:
        create(broker.bootstrap, topic, PARTITIONS)
        with Flow(broker, topic).flowing() as flow:
            old = group.add(old_confluent(group))
            new = group.add(new_confluent(group))
            move(group, ApacheKafka())
            assert group.kind == "consumer"
            group.remove(new)
            group.until_shared()
            assert group.kind == "classic"
            new = group.add(new_confluent(group))
            move(group, Ottla())
            assert group.kind == "consumer"
            group.remove(new)
            group.until_shared()
            assert group.kind == "classic"
            move(group, ApacheKafka())
            assert group.kind == "classic"
            assert old.partitions == set(range(PARTITIONS))
            group.until_all_handled(flow)
    finally:
        for member in list(group.members):
            group.remove(member)
        broker.kill()


def move(group: Group, flavour: Flavour) -> None:
    assert group.broker.stop() in (0, 143)
    group.broker.flavour = flavour
    group.broker.start()
    group.until_shared()
