"""Our source and sink speak plain Kafka protocol, so they serve users of Apache Kafka as well."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.blocking import Client
from ottla.client.groups import Groups
from ottla.model.types import TopicPartition
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess
from tests.spark.reading import Collector, run_to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(600)]
ROWS = 5_000


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(ApacheKafka(), tmp_path_factory.mktemp("kafka"))
    process.start()
    yield process
    process.stop()


@pytest.fixture
def made_topic(kafka: BrokerProcess, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
    return topic


def producer(kafka: BrokerProcess, **more: Any) -> confluent_kafka.Producer:  # noqa: ANN401
    return confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, **more})


def options(kafka: BrokerProcess, topic: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, **more}


def values(rows: list[Any]) -> list[str]:
    return sorted(bytes(row.value).decode() for row in rows)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_of_kafka_is_read_as_a_batch(
    spark: "SparkSession", kafka: BrokerProcess, made_topic: str, codec: str
) -> None:
    sending = producer(kafka, **{"compression.type": codec, "linger.ms": 50})
    for number in range(ROWS):
        sending.produce(
            made_topic, f"{number}", key=str(number), headers=[("n", str(number).encode())]
        )
    sending.flush(60)
    chosen = options(kafka, made_topic, includeHeaders=True, minPartitions=5)
    rows = spark.read.format("ottla").options(**chosen).load().collect()
    assert values(rows) == sorted(map(str, range(ROWS)))
    assert all(bytes(row.key) == bytes(row.value) == row.headers[0].value for row in rows)


def test_a_stream_goes_on_where_it_was_and_kafka_s_tools_see_it(
    spark: "SparkSession", kafka: BrokerProcess, made_topic: str, tmp_path: Path
) -> None:
    sending = producer(kafka)
    found: list[str] = []
    for first in (0, 1000):
        for number in range(first, first + 1000):
            sending.produce(made_topic, f"{number}")
        sending.flush(60)
        sink = Collector()
        more = {"startingOffsets": "earliest", "group": f"{made_topic}-group"}
        chosen = options(kafka, made_topic, maxOffsetsPerTrigger=400, **more)
        run_to_end(spark.readStream.format("ottla").options(**chosen).load(), tmp_path / "c", sink)
        assert len(sink.batches) == 3
        found += values(sink.rows)
    assert sorted(found) == sorted(map(str, range(2000)))
    with Client(kafka.bootstrap) as client:
        committed = client.run(Groups(client.cluster).offsets(f"{made_topic}-group"))
    assert sum(item.offset for item in committed.values()) == 2000


def test_aborted_transactions_are_not_read_by_who_reads_what_is_committed(
    spark: "SparkSession", kafka: BrokerProcess, made_topic: str
) -> None:
    sending = producer(kafka, **{"transactional.id": made_topic})
    sending.init_transactions(60)
    for number in range(6):
        sending.begin_transaction()
        for item in range(50):
            sending.produce(made_topic, f"{number}-{item}", partition=item % 3)
        sending.flush(60)  # Else what is to be aborted is never sent.
        if number % 2:
            sending.abort_transaction(60)
        else:
            sending.commit_transaction(60)
    sending.begin_transaction()
    sending.produce(made_topic, "open", partition=0)
    sending.flush(60)

    def read(level: str) -> list[str]:
        chosen = options(kafka, made_topic, **{"kafka.isolation.level": level})
        return values(spark.read.format("ottla").options(**chosen).load().collect())

    committed = [f"{number}-{item}" for number in (0, 2, 4) for item in range(50)]
    everything = [f"{number}-{item}" for number in range(6) for item in range(50)]
    assert read("read_committed") == sorted(committed)
    assert read("read_uncommitted") == sorted([*everything, "open"])
    sending.abort_transaction(60)


def test_rows_are_written_to_kafka(
    spark: "SparkSession", kafka: BrokerProcess, made_topic: str
) -> None:
    frame = spark.range(ROWS).selectExpr("string(id) as key", "string(id) as value")
    address = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": made_topic}
    frame.write.format("ottla").options(**address).mode("append").save()
    with Client(kafka.bootstrap) as client:
        places = {TopicPartition(made_topic, number): 0 for number in range(3)}
        written = [message.value for message in client.read(places, to_end=True)]
    assert sorted(written) == sorted(str(number).encode() for number in range(ROWS))
