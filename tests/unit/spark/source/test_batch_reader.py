import pickle

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, InputPartition
from pyspark.sql.types import IntegerType, StructField, StructType

from ottla.client.blocking import Client, Outgoing
from ottla.spark.arrow.schema import COLUMNS, spark_schema
from ottla.spark.errors import BadOption
from ottla.spark.source.batch_reader import BatchReader, PushdownReader, batch_reader
from ottla.testing import Broker
from tests.unit.spark.sources import fill


def reader(broker: Broker, topic: str, **more: str) -> BatchReader:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, **more}
    return batch_reader(spark_schema(COLUMNS), options)


def offsets(made: BatchReader) -> list[int]:
    made = pickle.loads(pickle.dumps(made))  # As Spark sends it to the tasks.
    return sorted(
        row["offset"]
        for task in made.partitions()
        for batch in made.read(task)
        for row in batch.to_pylist()
    )


def test_all_rows_come_from_as_many_tasks_as_asked_for(broker: Broker) -> None:
    topic = broker.create_topic("batch-reader")
    fill(broker, topic, 5)
    made = reader(broker, topic, minPartitions="4")
    assert len(made.partitions()) == 4
    assert offsets(made) == list(range(50))


def test_nothing_to_read_is_no_task(broker: Broker) -> None:
    made = reader(broker, broker.create_topic("batch-empty"))
    assert made.partitions() == []
    assert list(made.read(InputPartition(None))) == []


def test_an_end_before_the_start_is_refused(broker: Broker) -> None:
    topic = broker.create_topic("batch-backwards")
    fill(broker, topic, 2)
    options = {
        "startingOffsets": f'{{"{topic}": {{"0": 9}}}}',
        "endingOffsets": f'{{"{topic}": {{"0": 3}}}}',
    }
    with pytest.raises(BadOption, match="batch-backwards-0 would begin at 9, after it ends at 3"):
        reader(broker, topic, **options).partitions()


def test_a_schema_of_the_user_s_own_is_refused() -> None:
    with pytest.raises(BadOption, match="the source has columns of its own"):
        batch_reader(
            StructType([StructField("id", IntegerType())]),
            {"kafka.bootstrap.servers": "localhost:1", "subscribe": "x"},
        )


def test_filters_narrow_what_is_planned(broker: Broker) -> None:
    topic = broker.create_topic("batch-filters", partitions=2)
    made_at = 1_700_000_000_000
    with Client(broker.bootstrap_servers) as client:
        for partition in (0, 1):
            client.write(
                topic,
                [Outgoing(b"x", partition=partition, timestamp_ms=made_at + n) for n in range(20)],
            )
    from datetime import UTC, datetime

    made = reader(broker, topic, filterPushdown="true")
    assert isinstance(made, PushdownReader)
    time = datetime.fromtimestamp((made_at + 15) / 1000, UTC)
    asked = [EqualTo(("partition",), 1), GreaterThanOrEqual(("timestamp",), time)]
    assert made.pushFilters(asked) == [asked[1]]
    (task,) = made.partitions()
    assert (task.source.partition, task.end) == (1, 20)
    assert 13 <= task.start <= 15
    later = reader(broker, topic, filterPushdown="true")
    assert isinstance(later, PushdownReader)
    later.pushFilters([GreaterThanOrEqual(("timestamp",), datetime(2999, 1, 1, tzinfo=UTC))])
    assert later.partitions() == []


def test_a_reader_takes_filters_only_where_spark_gives_them(broker: Broker) -> None:
    assert not isinstance(reader(broker, "x", filterPushdown="false"), PushdownReader)
