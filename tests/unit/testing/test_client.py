import asyncio
from collections.abc import Iterator

import pytest

from ottla.client.metadata import UnknownTopic
from ottla.testing import Broker
from ottla.testing.client import Client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Broker(auto_create_topics_enable=False) as broker:
        yield Client(broker.bootstrap_servers)


def test_records_are_read_by_partition_and_offset(client: Client) -> None:
    client.create_topic("many", 3, {})
    for number in range(30):
        client.produce("many", [b"%d" % number], key=None, headers=(), partition=number % 3)
    records = client.records("many")
    assert [(record.partition, record.offset) for record in records] == [
        (partition, offset) for partition in range(3) for offset in range(10)
    ]
    assert records[10].value == b"1"


def test_an_empty_topic_has_no_records(client: Client) -> None:
    client.create_topic("empty", 2, {})
    assert client.records("empty") == []


def test_a_missing_topic_is_reported(client: Client) -> None:
    with pytest.raises(UnknownTopic):
        client.records("absent")
    with pytest.raises(UnknownTopic):
        client.delete_topic("absent")


def test_calls_work_where_a_loop_is_running(client: Client) -> None:
    async def work() -> list[str]:
        return client.topics()

    assert asyncio.run(work()) == client.topics()
