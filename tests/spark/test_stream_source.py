"""`spark.readStream.format("ottla")` in a real Spark, from a real broker."""

import re
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.client.blocking import Client, Outgoing
from ottla.client.groups import Groups
from ottla.model.types import TopicPartition
from ottla.testing import Broker
from tests.conformance.broker_process import BrokerProcess, Ottla, free_ports
from tests.spark.reading import Collector, read_stream, run_to_end, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def wait_until(condition: Any, seconds: float = 60) -> None:  # noqa: ANN401
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def test_a_query_takes_what_there_is_and_goes_on_where_it_was(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=2)
    broker.produce(topic, *(f"a{n}" for n in range(30)), partition=0)
    broker.produce(topic, *(f"b{n}" for n in range(10)), partition=1)
    sink = Collector()
    frame = read_stream(spark, broker, topic, maxOffsetsPerTrigger=16)
    query = run_to_end(frame, tmp_path / "checkpoint", sink)
    assert [len(rows) for _, rows in sorted(sink.batches.items())] == [16, 16, 8]
    assert sorted(sink.values) == sorted(
        [*(f"a{n}".encode() for n in range(30)), *(f"b{n}".encode() for n in range(10))]
    )
    assert query.lastProgress["sources"][0]["latestOffset"] is not None
    broker.produce(topic, "later", partition=1)
    again = Collector()
    run_to_end(frame, tmp_path / "checkpoint", again)
    assert again.values == [b"later"]


def test_a_running_query_gets_rows_and_new_partitions_as_they_come(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    sink = Collector()
    options = {"kafka.metadata.max.age.ms": "500", "startingOffsets": "latest"}
    broker.produce(topic, "before")
    query = start(read_stream(spark, broker, topic, **options), tmp_path / "checkpoint", sink)
    try:
        wait_until(lambda: query.lastProgress is not None or not query.isActive)
        broker.produce(topic, "first")
        wait_until(lambda: sink.values == [b"first"])
        with Client(broker.bootstrap_servers) as client:
            client.run(client.admin.create_partitions(topic, 2))
        broker.produce(topic, "second", partition=1)
        wait_until(lambda: sink.values == [b"first", b"second"])
    finally:
        query.stop()


def test_progress_is_committed_to_the_group(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=2)
    broker.produce(topic, *["x"] * 7, partition=0)
    broker.produce(topic, *["y"] * 5, partition=1)
    frame = read_stream(spark, broker, topic, group=f"{topic}-group")
    run_to_end(frame, tmp_path / "checkpoint", Collector())
    with Client(broker.bootstrap_servers) as client:
        found = client.run(Groups(client.cluster).offsets(f"{topic}-group"))
    offsets = {place: item.offset for place, item in found.items()}
    assert offsets == {TopicPartition(topic, 0): 7, TopicPartition(topic, 1): 5}


def test_a_limit_in_bytes_holds_whatever_the_size_of_rows(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=2)
    for _ in range(20):
        broker.produce(topic, *["s" * 100] * 500, partition=0)
        broker.produce(topic, *["l" * 10_000] * 20, partition=1)
    sink = Collector()
    frame = read_stream(spark, broker, topic, maxBytesPerTrigger="1m")
    run_to_end(frame, tmp_path / "checkpoint", sink)
    sizes = [sum(len(row.value) for row in rows) for _, rows in sorted(sink.batches.items())]
    assert sum(sizes) == 20 * (500 * 100 + 20 * 10_000)
    assert len(sizes) >= 4
    assert max(sizes) < 1.5 * 2**20


def test_little_data_waits_for_more(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *["x"] * 5)
    sink = Collector()
    frame = read_stream(spark, broker, topic, minOffsetsPerTrigger=10, maxTriggerDelay="5m")
    query = start(frame, tmp_path / "checkpoint", sink)
    try:
        wait_until(lambda: len(sink.rows) == 5)  # The first batch does not wait.
        broker.produce(topic, *["y"] * 4)
        time.sleep(2)
        assert len(sink.rows) == 5
        broker.produce(topic, *["z"] * 6)
        wait_until(lambda: len(sink.rows) == 15)
    finally:
        query.stop()
    assert [len(rows) for _, rows in sorted(sink.batches.items())] == [5, 10]


def test_records_that_are_gone_fail_the_query_unless_told_otherwise(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *(str(n) for n in range(5)))
    checkpoint = tmp_path / "checkpoint"
    run_to_end(read_stream(spark, broker, topic), checkpoint, Collector())
    broker.produce(topic, *(str(n) for n in range(5, 20)))
    with Client(broker.bootstrap_servers) as client:
        client.run(client.admin.delete_records({TopicPartition(topic, 0): 12}))
    with pytest.raises(Exception, match="the log begins at 12 now"):
        run_to_end(read_stream(spark, broker, topic), checkpoint, Collector())
    sink = Collector()
    run_to_end(read_stream(spark, broker, topic, failOnDataLoss=False), checkpoint, sink)
    assert sink.values == [str(n).encode() for n in range(12, 20)]


def test_a_topic_made_anew_is_not_taken_for_the_old_one(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "old")
    checkpoint = tmp_path / "checkpoint"
    run_to_end(read_stream(spark, broker, topic), checkpoint, Collector())
    broker.delete_topic(topic)
    broker.create_topic(topic)
    broker.produce(topic, "new", "newer", "newest")
    with pytest.raises(Exception, match="was deleted and made anew"):
        run_to_end(read_stream(spark, broker, topic), checkpoint, Collector())
    sink = Collector()
    run_to_end(read_stream(spark, broker, topic, failOnDataLoss=False), checkpoint, sink)
    assert sink.values == [b"new", b"newer", b"newest"]


def test_a_broker_that_is_killed_in_the_middle_loses_and_repeats_no_row(
    spark: "SparkSession", topic: str, tmp_path: Path
) -> None:
    with Broker(process=True) as broker:
        broker.create_topic(topic, partitions=2)
        for start_at in range(0, 40_000, 4_000):
            for partition in (0, 1):
                values = (f"{n:0200d}" for n in range(start_at, start_at + 4_000))
                broker.produce(topic, *values, partition=partition)
        options = {"kafka.max.partition.fetch.bytes": "64k", "maxOffsetsPerTrigger": "20000"}
        sink = Collector()
        frame = read_stream(spark, broker, topic, **options).select("partition", "offset", "value")
        query = start(frame, tmp_path / "checkpoint", sink)
        try:
            wait_until(lambda: len(sink.batches) >= 1)
            broker.kill()
            time.sleep(1)
            broker.start()
            wait_until(lambda: len(sink.rows) >= 80_000 or not query.isActive)
        finally:
            query.stop()
        places = [(row.partition, row.offset) for row in sink.rows]
        assert len(places) == 80_000
        assert len(set(places)) == 80_000
        assert all(int(row.value) == row.offset for row in sink.rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"maxBytesPerTrigger": "lots"}, "it must be a size in bytes"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "must not be more than"),
        ({"subscribePattern": "a", "subscribe": "b"}, "give exactly one of subscribe"),
        ({"startingOffsets": '{"other": {"0": 1}}'}, "it does not say where"),
        ({"group": " "}, "the name of a consumer group is expected"),
    ],
)
def test_a_wrong_option_stops_the_query_with_one_sentence(
    spark: "SparkSession",
    broker: Broker,
    topic: str,
    tmp_path: Path,
    options: dict[str, str],
    sentence: str,
) -> None:
    broker.create_topic(topic)
    with pytest.raises(Exception, match="BadOption") as failure:
        run_to_end(read_stream(spark, broker, topic, **options), tmp_path / "c", Collector())
    assert sentence in str(failure.value)


def test_a_micro_batch_costs_one_question_about_offsets_and_its_fetches(
    spark: "SparkSession", topic: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    settings = {"ottla.metrics.listener": f"127.0.0.1:{port}"}
    process = BrokerProcess(Ottla(), tmp_path / "broker", settings).start()
    try:
        with Client(process.bootstrap) as client:
            client.run(client.admin.create_topic(topic, partitions=2))
            for partition in (0, 1):
                client.write(topic, [Outgoing(b"x", partition=partition)] * 100)
        before = requests(port)
        sink = Collector()
        options = {"kafka.bootstrap.servers": process.bootstrap, "startingOffsets": "earliest"}
        reader = spark.readStream.format("ottla").options(**options, subscribe=topic)
        frame = reader.option("maxOffsetsPerTrigger", 20).load()
        run_to_end(frame, tmp_path / "checkpoint", sink)
        asked = requests(port) - before
    finally:
        process.stop()
    assert len(sink.batches) == 10
    # Beside one for each batch: where the stream begins, where it is to stop, and that it is there.
    assert asked["ListOffsets"] <= len(sink.batches) + 4, asked
    assert asked["Fetch"] <= 2 * len(sink.batches) + 2, asked
    assert asked["Metadata"] <= 4, asked
    assert set(asked) <= {"ListOffsets", "Fetch", "Metadata", "ApiVersions"}


def requests(port: int) -> Counter[str]:
    """How many requests the broker has served, by API."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(r'^ottla_requests_total\{api="(\w+)"\} (\d+)', text, re.MULTILINE)
    return Counter({api: int(count) for api, count in found})
