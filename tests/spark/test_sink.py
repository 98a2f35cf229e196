"""`write.format("ottla")` and `writeStream`, from a real Spark into a real broker."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla.spark as ot
from ottla.client.partitioner import partition_of_key
from ottla.records.batch import Batch
from ottla.testing import Broker
from tests.spark.reading import read, read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(frame: "DataFrame", broker: Broker, **options: Any) -> None:  # noqa: ANN401
    chosen = {"kafka.bootstrap.servers": broker.bootstrap_servers, **options}
    frame.write.format("ottla").options(**chosen).mode("append").save()


def test_rows_go_where_kafkas_own_clients_put_them(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=3)
    rows = spark.range(0, 5000, 1, 4).selectExpr(
        "cast(id as string) as key", "concat('value ', id) as value"
    )
    write(rows, broker, topic=topic)
    records = broker.records(topic)
    assert Counter(record.value for record in records) == Counter(
        b"value %d" % number for number in range(5000)
    )
    for record in records:
        assert record.key is not None
        assert record.value == b"value " + record.key
        assert record.partition == partition_of_key(record.key, 3)


def test_a_row_may_name_everything(spark: "SparkSession", broker: Broker, topic: str) -> None:
    first, second = broker.create_topic(f"{topic}-1", 2), broker.create_topic(f"{topic}-2", 2)
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    schema = (
        "topic string, partition int, key binary, value binary, timestamp timestamp,"
        "headers array<struct<key:string,value:binary>>, other double"
    )
    rows = [
        (first, 1, b"k", b"a", moment, [("h", b"1"), ("h", None)], 1.0),
        (second, None, None, b"b", None, None, 2.0),
        (first, 0, b"k", None, moment, [], 3.0),
    ]
    write(spark.createDataFrame(rows, schema), broker)
    tombstone, record = broker.records(first)
    assert (tombstone.partition, tombstone.key, tombstone.value) == (0, b"k", None)
    assert (record.partition, record.value) == (1, b"a")
    assert record.headers == (("h", b"1"), ("h", None))
    assert record.timestamp_ms == int(moment.timestamp() * 1000)
    assert [record.value for record in broker.records(second)] == [b"b"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_asked_for(
    spark: "SparkSession", broker: Broker, topic: str, codec: str
) -> None:
    broker.create_topic(topic)
    rows = spark.range(0, 1000, 1, 1).selectExpr("repeat(cast(id as string), 20) as value")
    write(rows, broker, **{"topic": topic, "kafka.compression.type": codec})
    (log,) = Path(broker.data).rglob(f"{topic}-0/*.log")
    assert Batch.parse(log.read_bytes()).codec == ["", "gzip", "snappy", "lz4", "zstd"].index(codec)
    assert [record.value for record in broker.records(topic)] == [
        str(number).encode() * 20 for number in range(1000)
    ]


def test_what_a_source_read_is_written_as_it_was(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    source, target = broker.create_topic(topic, 2), broker.create_topic(f"{topic}-copy", 2)
    broker.produce(source, "a", None, key="k", headers=[("h", b"1")], partition=1)
    broker.produce(source, "b", partition=0)
    frame = read(spark, broker, source, includeHeaders="true")
    write(frame, broker, topic=target)
    copied = [record[1:] for record in broker.records(target)]
    assert copied == [record[1:] for record in broker.records(source)]


def test_a_stream_is_written_and_goes_on_after_a_restart(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    source, target = broker.create_topic(topic, 2), broker.create_topic(f"{topic}-copy", 3)
    frame = read_stream(spark, broker, source).selectExpr("key", "upper(string(value)) as value")
    for start in (0, 50):
        broker.produce(source, *(f"v{number}" for number in range(start, start + 50)))
        query = ot.to_log(
            frame,
            checkpoint=tmp_path / "checkpoint",
            bootstrap=broker.bootstrap_servers,
            topic=target,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
    written = [record.value for record in broker.records(target)]
    assert sorted(written) == sorted(b"V%d" % number for number in range(100))


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("'a' as value", {"topic": "missing"}, "option 'topic' is 'missing': there is no such"),
        ("'a' as value", {}, "no topic is named: set option 'topic'"),
        ("'a' as valu", {"topic": "t"}, "no column 'value': its columns are valu"),
        ("1 as value", {"topic": "t"}, "column 'value' is of type int: it must be binary or str"),
        ("'a' as value", {"topic": "t", "kafka.bach.size": "1"}, "did you mean 'kafka.batch.size'"),
        (
            "'a' as value",
            {"topic": "t", "kafka.bootstrap.servers": "127.0.0.1:1"},
            "option 'kafka.bootstrap.servers' is '127.0.0.1:1': cannot connect",
        ),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(
    spark: "SparkSession", broker: Broker, columns: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(Exception, match="ottla") as caught:
        write(spark.range(1).selectExpr(columns), broker, **options)
    assert sentence in str(caught.value)


def test_a_partition_that_does_not_exist_fails_the_job(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, 2)
    rows = spark.range(1).selectExpr("'a' as value", "int(7) as partition")
    with pytest.raises(Exception, match="has no partition 7: it has 2"):
        write(rows, broker, topic=topic)
