"""Topics into Delta tables: each micro-batch once, whatever is run again."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

import ottla.spark as ot
from ottla.spark.errors import SparkError
from ottla.testing import Broker
from tests.spark.reading import read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ONCE = {"availableNow": True}


def table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return rows


def forget_last_commit(checkpoint: Path) -> int:
    """As if the driver had died after the table was written: Spark runs the batch again."""
    commits = [path for path in (checkpoint / "commits").iterdir() if path.name.isdecimal()]
    last = max(commits, key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    return int(last.name)


def numbers(frame: "DataFrame") -> "DataFrame":
    return frame.selectExpr("int(string(value)) as number", "partition", "offset", "timestamp")


def test_rows_are_appended_once_though_a_batch_is_run_again(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    broker.produce(topic, *(str(number) for number in range(60)))
    frame = numbers(read_stream(spark, broker, topic, maxOffsetsPerTrigger=25))
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    ot.to_delta(frame, lake, checkpoint=checkpoint, trigger=ONCE).awaitTermination()
    assert sorted(row["number"] for row in table(lake)) == list(range(60))
    assert DeltaTable(str(lake)).version() == 3, "one commit a micro-batch"

    assert forget_last_commit(checkpoint) == 2
    broker.produce(topic, *(str(number) for number in range(60, 80)))
    ot.to_delta(frame, lake, checkpoint=checkpoint, trigger=ONCE).awaitTermination()
    assert sorted(row["number"] for row in table(lake)) == list(range(80))


def test_a_query_of_its_own_begins_anew(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Another checkpoint is another query: what it reads is not taken for what is there."""
    broker.create_topic(topic)
    broker.produce(topic, "1", "2")
    frame = numbers(read_stream(spark, broker, topic))
    for name in ("first", "second"):
        query = ot.to_delta(frame, tmp_path / "lake", checkpoint=tmp_path / name, trigger=ONCE)
        query.awaitTermination()
    assert sorted(row["number"] for row in table(tmp_path / "lake")) == [1, 1, 2, 2]


def test_the_last_change_of_a_key_counts_and_tombstones_delete(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    frame = read_stream(spark, broker, topic, maxOffsetsPerTrigger=4).selectExpr(
        "string(key) as id", "string(value) as value", "offset"
    )
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"

    def change(key: str, *values: str | None) -> None:
        broker.produce(topic, *values, key=key)

    def keep_up() -> dict[str, str]:
        ot.to_delta(
            frame,
            lake,
            checkpoint=checkpoint,
            key="id",
            sequence="offset",
            delete="value is null",
            trigger=ONCE,
        ).awaitTermination()
        return {row["id"]: row["value"] for row in table(lake)}

    change("a", "1", "2", "3")
    change("b", "1", None)
    change("c", "1")
    assert keep_up() == {"a": "3", "c": "1"}
    change("c", None)
    change("b", "2")
    change("d", None)
    assert keep_up() == {"a": "3", "b": "2"}
    forget_last_commit(checkpoint)
    change("a", None, "4")
    assert keep_up() == {"a": "4", "b": "2"}


def test_totals_are_replaced_as_they_grow(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    counts = read_stream(spark, broker, topic).groupBy("key").count()
    frame = counts.selectExpr("string(key) as key", "count")
    for expected in (3, 6):
        broker.produce(topic, "x", "x", "x", key="k")
        query = ot.to_delta(
            frame, tmp_path / "lake", checkpoint=tmp_path / "checkpoint", key="key", trigger=ONCE
        )
        query.awaitTermination()
        assert table(tmp_path / "lake") == [{"key": "k", "count": expected}]


def test_a_driver_that_was_replaced_is_refused(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    """A copy of the checkpoint is what a driver knows that does not know it was replaced."""
    broker.create_topic(topic)
    broker.produce(topic, "1")
    frame = numbers(read_stream(spark, broker, topic))
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    ot.to_delta(frame, lake, checkpoint=checkpoint, trigger=ONCE).awaitTermination()
    shutil.copytree(checkpoint, tmp_path / "zombie")
    broker.produce(topic, "2")
    ot.to_delta(frame, lake, checkpoint=checkpoint, trigger=ONCE).awaitTermination()
    ot.to_delta(frame, lake, checkpoint=tmp_path / "zombie", trigger=ONCE).awaitTermination()
    assert sorted(row["number"] for row in table(lake)) == [1, 2]


def test_what_does_not_fit_is_told_before_a_query_runs(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    frame = numbers(read_stream(spark, broker, topic))
    lake, where = tmp_path / "lake", {"checkpoint": tmp_path / "checkpoint"}
    ot.to_delta(frame, lake, trigger=ONCE, **where).awaitTermination()
    with pytest.raises(SparkError, match=r"column 'number' of the table .* is integer, .* string"):
        ot.to_delta(frame.selectExpr("string(number) as number"), lake, **where)
    with pytest.raises(SparkError, match="has no column 'more'"):
        ot.to_delta(frame.selectExpr("1 as more"), lake, **where)
    with pytest.raises(SparkError, match="key is 'id', but the frame's columns are number, part"):
        ot.to_delta(frame, lake, key="id", **where)
    with pytest.raises(SparkError, match="give key= too"):
        ot.to_delta(frame, lake, sequence="offset", **where)
    with pytest.raises(SparkError, match=r"use spark\.readStream"):
        ot.to_delta(spark.range(1), lake, **where)


def test_changes_without_a_key_or_an_order_end_the_query_with_a_sentence(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "1", "2", key="k")
    broker.produce(topic, "3")
    frame = read_stream(spark, broker, topic).selectExpr("string(key) as id", "offset")
    for name, more, sentence in (
        ("null", {"sequence": "offset"}, "1 changes have no key: column 'id' is null"),
        ("twice", {}, "several changes of one id: name the column that orders them"),
    ):
        rows = frame if name == "null" else frame.where("id is not null")
        query = ot.to_delta(
            rows, tmp_path / name, checkpoint=tmp_path / f"{name}-ck", key="id", **more
        )
        with pytest.raises(Exception, match=sentence):
            query.awaitTermination(60)
        query.stop()


def test_what_the_table_is_read_by_is_right(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Files carry their counts and ranges: readers skip files by them."""
    broker.create_topic(topic)
    broker.produce(topic, *(str(number) for number in range(5, 25)))
    frame = numbers(read_stream(spark, broker, topic)).coalesce(1)
    lake = tmp_path / "lake"
    ot.to_delta(frame, lake, checkpoint=tmp_path / "ck", trigger=ONCE).awaitTermination()
    found = DeltaTable(str(lake)).get_add_actions(flatten=True)
    rows = json.loads(
        json.dumps(
            {
                name: found.column(name).to_pylist()
                for name in ("num_records", "min.number", "max.number", "min.offset", "max.offset")
            }
        )
    )
    assert rows == {
        "num_records": [20],
        "min.number": [5],
        "max.number": [24],
        "min.offset": [0],
        "max.offset": [19],
    }


def test_parquet_is_written_by_spark_itself(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    broker.produce(topic, *(str(number) for number in range(40)))
    frame = numbers(read_stream(spark, broker, topic))
    for _ in range(2):
        query = (
            frame.writeStream.format("parquet")
            .option("path", str(tmp_path / "files"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    read = spark.read.parquet(str(tmp_path / "files"))
    assert sorted(row.number for row in read.collect()) == list(range(40))
