"""What the sink's tasks write is taken by Apache Kafka and read by stock clients."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.partitioner import partition_of_key
from ottla.records.compression import Codec
from ottla.spark.options import Access
from ottla.spark.sink.producer import SinkSettings
from ottla.spark.sink.rows import Layout
from ottla.spark.sink.task import SinkTask
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(300)]

ROWS = 20_000
PARTITIONS = 3
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(ApacheKafka(), tmp_path_factory.mktemp("kafka")).start()
    yield process
    process.kill()


def rows(start: int, end: int) -> Any:  # noqa: ANN401
    numbers = [str(number).encode() for number in range(start, end)]
    headers = [[{"key": "n", "value": number}] for number in numbers]
    columns = [pa.array(numbers, pa.binary()), pa.array(numbers, pa.binary())]
    return pa.record_batch([*columns, pa.array(headers, HEADERS)], ["key", "value", "headers"])


def read(kafka: BrokerProcess, topic: str) -> list[Any]:
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "check.crcs": True}
    reader = Consumer({**settings, "enable.auto.commit": False})
    try:
        reader.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        found: list[Any] = []
        while len(found) < ROWS:
            taken = reader.consume(5000, 20)
            assert taken, f"only {len(found)} records came"
            found += taken
        return found
    finally:
        reader.close()


@pytest.mark.parametrize("codec", list(Codec))
def test_kafka_takes_what_a_task_writes(kafka: BrokerProcess, codec: Codec) -> None:
    topic = f"written-{codec.name.lower()}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    layout = Layout(topic, (("key", 0), ("value", 1), ("headers", 2)))
    settings = SinkSettings(codec=codec, batch_bytes_max=64 * 1024)
    with closing(SinkTask(Access(kafka.bootstrap), settings)) as task:
        for start in (0, ROWS // 2):  # Two tasks of one worker.
            assert task.write([rows(start, start + ROWS // 2)], layout) == ROWS // 2
    found = read(kafka, topic)
    assert len(found) == ROWS
    last = [-1] * PARTITIONS
    for message in found:
        assert message.error() is None
        assert message.key() == message.value()
        assert message.headers() == [("n", message.value())]
        assert message.partition() == partition_of_key(message.key(), PARTITIONS)
        assert int(message.value()) > last[message.partition()], "order"
        last[message.partition()] = int(message.value())
