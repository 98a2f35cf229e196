"""Groups that move: Kafka commits, Ottla goes on, Kafka goes on from there, in one directory."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Position

from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess, Flavour, Ottla
from tests.conformance.librdkafka import create
from tests.conformance.test_groups import Member, produce, until
from tests.conformance.test_moving import eventually

TOPIC = "moving"
PROTOCOLS = ("classic", "consumer")


def run(broker: BrokerProcess, flavour: Flavour) -> None:
    broker.flavour = flavour
    broker.start()


def read_all(broker: BrokerProcess, protocol: str, offset: int) -> None:
    """A member finds exactly the one new record of each partition, and commits."""
    config: dict[str, object] = {"group_protocol": protocol}
    if protocol == "consumer":
        config |= {"session_timeout_ms": None, "heartbeat_interval_ms": None}
    member = Member(broker, f"of-{protocol}", TOPIC, **config)
    until(lambda: len(member.records) >= 4, member)
    assert sorted(member.records) == [(index, offset) for index in range(4)]
    eventually(lambda: member.consumer.commit(asynchronous=False))
    member.consumer.close()


def commit_in_transactions(broker: BrokerProcess) -> None:
    """Offsets that belong to a transaction count only if it was committed."""
    member = Member(broker, "of-transactions", TOPIC)
    until(lambda: len(member.partitions) == 4, member)
    sender = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "mover"})
    sender.init_transactions(30)
    for offset, is_kept in ((5, True), (9, False)):
        sender.begin_transaction()
        sender.produce("results", b"a result")
        position = [Position(TOPIC, 0, offset)]
        sender.send_offsets_to_transaction(position, member.consumer.consumer_group_metadata(), 30)
        if is_kept:
            sender.commit_transaction(30)
        else:
            sender.abort_transaction(30)
    member.consumer.close()


@pytest.mark.slow
def test_groups_go_on_in_both_directions(flavour: Flavour, tmp_path: Path) -> None:
    if flavour.name == "kafka":
        pytest.skip("this one always needs both")
    settings = {"group.initial.rebalance.delay.ms": "0"}
    broker = BrokerProcess(ApacheKafka(), tmp_path / "broker", settings)
    try:
        broker.start()
        create(broker.bootstrap, TOPIC, 4)
        create(broker.bootstrap, "results")
        for turn, next_flavour in enumerate((Ottla(), ApacheKafka(), None)):
            produce(broker, TOPIC, 1)
            for protocol in PROTOCOLS:
                read_all(broker, protocol, turn)
            if turn == 0:
                commit_in_transactions(broker)
            else:
                reader = Member(broker, "of-transactions", TOPIC)
                found = reader.consumer.committed([Position(TOPIC, 0)], 30)[0].offset
                assert found == 5
                reader.consumer.close()
            if next_flavour is not None:
                assert broker.stop() in (0, 143)
                run(broker, next_flavour)
    finally:
        broker.kill()
