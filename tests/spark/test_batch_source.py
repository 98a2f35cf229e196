"""`spark.read.format("ottla")` in a real Spark, from a real broker."""

import datetime
from typing import TYPE_CHECKING

import pytest

from ottla.client.blocking import Client, Outgoing
from ottla.testing import Broker
from tests.spark.reading import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_have_exactly_the_columns_of_spark_s_kafka_source(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "one", key="k")
    broker.produce(topic, None)
    frame = read(spark, broker, topic)
    assert frame.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    first, second = frame.orderBy("offset").collect()
    assert (first.key, first.value, first.topic) == (b"k", b"one", topic)
    assert (first.partition, first.offset, first.timestampType) == (0, 0, 0)
    age = datetime.datetime.now() - first.timestamp  # noqa: DTZ005  Spark shows local time.
    assert abs(age) < datetime.timedelta(minutes=5)
    assert (second.key, second.value, second.offset) == (None, None, 1)


def test_headers_come_when_asked_for(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "with", headers=[("a", b"1"), ("b", None), ("a", b"")])
    broker.produce(topic, "without")
    frame = read(spark, broker, topic, includeHeaders=True)
    assert frame.dtypes[-1] == ("headers", "array<struct<key:string,value:binary>>")
    first, second = frame.orderBy("offset").collect()
    assert [(h.key, h.value) for h in first.headers] == [("a", b"1"), ("b", None), ("a", b"")]
    assert second.headers is None


def test_only_the_columns_that_are_named_are_made(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "x")
    frame = read(spark, broker, topic, columns="value, offset")
    assert frame.columns == ["value", "offset"]
    assert frame.collect() == [(b"x", 0)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "none"])
def test_every_codec_is_read(spark: "SparkSession", broker: Broker, topic: str, codec: str) -> None:
    import confluent_kafka

    broker.create_topic(topic, partitions=2)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
    )
    for number in range(2000):
        producer.produce(topic, f"value {number}", key=str(number), partition=number % 2)
    producer.flush(30)
    rows = read(spark, broker, topic).selectExpr("cast(value as string) v").collect()
    assert sorted(row.v for row in rows) == sorted(f"value {number}" for number in range(2000))


def test_topics_by_pattern_and_partitions_by_assignment(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    for name in ("a", "b"):
        broker.create_topic(f"{topic}.{name}", partitions=2)
        for partition in (0, 1):
            broker.produce(f"{topic}.{name}", f"{name}{partition}", partition=partition)
    found = read(spark, broker, topic, subscribePattern=rf"{topic}\.[ab]").collect()
    assert sorted(row.value for row in found) == [b"a0", b"a1", b"b0", b"b1"]
    found = read(spark, broker, topic, assign=f'{{"{topic}.a": [1], "{topic}.b": [0]}}').collect()
    assert sorted(row.value for row in found) == [b"a1", b"b0"]


def test_offsets_by_name_and_by_number(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    for partition in (0, 1):
        broker.produce(topic, *(str(n) for n in range(10)), partition=partition)

    def values(**options: str) -> list[tuple[int, int]]:
        rows = read(spark, broker, topic, **options).collect()
        return sorted((row.partition, row.offset) for row in rows)

    whole = [(p, n) for p in (0, 1) for n in range(10)]
    assert values() == whole
    assert values(startingOffsets="earliest", endingOffsets="latest") == whole
    begin = f'{{"{topic}": {{"0": 7, "1": -2}}}}'
    end = f'{{"{topic}": {{"0": -1, "1": 3}}}}'
    expected = [(0, 7), (0, 8), (0, 9), (1, 0), (1, 1), (1, 2)]
    assert values(startingOffsets=begin, endingOffsets=end) == expected


def test_offsets_by_time(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    with Client(broker.bootstrap_servers) as client:
        for partition in (0, 1):
            made = [
                Outgoing(str(n).encode(), partition=partition, timestamp_ms=1_700_000_000_000 + n)
                for n in range(10)
            ]
            client.write(topic, made)

    def offsets(**options: object) -> list[tuple[int, int]]:
        rows = read(spark, broker, topic, **options).collect()
        return sorted((row.partition, row.offset) for row in rows)

    early, late = 1_700_000_000_004, 1_700_000_000_007
    both = [(p, n) for p in (0, 1) for n in (4, 5, 6)]
    assert offsets(startingTimestamp=early, endingTimestamp=late) == both
    times = f'{{"{topic}": {{"0": {late}, "1": {late + 2}}}}}'
    assert offsets(startingOffsetsByTimestamp=times) == [(0, 7), (0, 8), (0, 9), (1, 9)]
    never = 1_800_000_000_000
    assert offsets(startingTimestamp=never, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(Exception, match="has no record at or after 1800000000000 ms"):
        offsets(startingTimestamp=never)


def test_a_topic_is_split_into_as_many_tasks_as_asked_for(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=2)
    for partition, count in ((0, 900), (1, 100)):
        broker.produce(topic, *["x" * 100] * count, partition=partition)
    frame = read(spark, broker, topic, minPartitions=7)
    assert frame.rdd.getNumPartitions() == 7
    places = {(row.partition, row.offset) for row in frame.select("partition", "offset").collect()}
    assert len(places) == 1000
    assert frame.count() == 1000
    frame = read(spark, broker, topic, maxRecordsPerPartition=50)
    assert frame.rdd.getNumPartitions() == 20
    assert frame.count() == 1000


def test_filters_choose_what_is_fetched(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=4)
    for partition in range(4):
        broker.produce(topic, *(str(n) for n in range(50)), partition=partition)
    frame = read(spark, broker, topic)
    found = frame.where("partition = 3 and offset >= 45 and offset < 48")
    assert sorted(row.offset for row in found.collect()) == [45, 46, 47]
    assert found.rdd.getNumPartitions() == 1
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "Filter" not in plan.replace("RuntimeFilters", ""), plan
    assert frame.where("partition in (0, 2) and topic = 'another'").count() == 0
    assert frame.where("timestamp > '2999-01-01'").count() == 0
    assert frame.where("timestamp > '2001-01-01' and offset in (3, 5)").count() == 8


def test_an_empty_topic_has_no_rows(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    assert read(spark, broker, topic).collect() == []


def test_gaps_of_deleted_records_are_no_loss_in_a_batch(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    from ottla.model.types import TopicPartition

    broker.create_topic(topic)
    broker.produce(topic, *(str(n) for n in range(20)))
    with Client(broker.bootstrap_servers) as client:
        client.run(client.admin.delete_records({TopicPartition(topic, 0): 8}))
    assert [row.offset for row in read(spark, broker, topic).collect()] == list(range(8, 20))
    begin = f'{{"{topic}": {{"0": 3}}}}'
    with pytest.raises(Exception, match="holds the offsets 8 to 20, and 3 lies outside"):
        read(spark, broker, topic, startingOffsets=begin).collect()
    rows = read(spark, broker, topic, startingOffsets=begin, failOnDataLoss=False).collect()
    assert [row.offset for row in rows] == list(range(8, 20))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOfsets": "earliest"}, "there is no such option; did you mean 'startingOffsets'"),
        ({"subscribe": "a-topic-that-is-not"}, "there is no topic 'a-topic-that-is-not'"),
        ({"startingOffsets": "first"}, "option 'startingOffsets' is 'first': it must be earliest"),
        ({"startingOffsets": "latest"}, "a batch that begins at the latest has no rows"),
        ({"minPartitions": "none"}, "option 'minpartitions' is 'none': it must be a whole number"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "cannot connect to 127.0.0.1:1"),
        ({"kafka.security.protocol": "SSL"}, "only PLAINTEXT is spoken yet"),
        ({"kafka.sasl.jaas.config": "secret"}, "TLS and SASL are not spoken yet"),
        ({"kafka.auto.offset.reset": "latest"}, "say where to begin with 'startingOffsets'"),
    ],
)
def test_a_wrong_option_is_one_sentence_that_names_it(
    spark: "SparkSession", broker: Broker, topic: str, options: dict[str, str], sentence: str
) -> None:
    broker.create_topic(topic)
    with pytest.raises(Exception, match=r"BadOption|NoTopic") as failure:
        read(spark, broker, topic, **options).collect()
    assert sentence.lower() in str(failure.value).lower()
    assert "secret" not in str(failure.value)


def test_a_time_that_spark_cannot_hold_is_told(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, configs={"message.timestamp.after.max.ms": 2**63 - 1})
    with Client(broker.bootstrap_servers) as client:
        client.write(topic, [Outgoing(b"far", timestamp_ms=2**62)])
    with pytest.raises(Exception, match=f"{topic}-0 at offset 0 has the timestamp {2**62} ms"):
        read(spark, broker, topic).collect()
    assert read(spark, broker, topic, columns="value").collect() == [(b"far",)]
