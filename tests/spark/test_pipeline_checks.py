"""Pipelines are checked by Spark and the brokers first; mistakes are told with their line."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from ottla.spark.pipeline import load
from ottla.spark.pipelines.model import PipelineError, check
from ottla.spark.pipelines.run import Running, prepare
from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YAML = """\
bootstrap: {bootstrap}
checkpoints: {directory}/checkpoints
sources:
  orders:
    topic: {topic}
    schema: id long not null, customer string, amount double
    valid: amount > 0
    dead_letter: {topic}-dlq
    options: {{maxOffsetsPerTrigger: 90}}
steps:
  doubled: |
    SELECT id, customer,
      2 * amount AS amount
    FROM orders
sinks:
  bills:
    from: doubled
    topic: {topic}-bills
  lake:
    from: doubled
    delta: {directory}/lake
    key: id
"""

PYTHON = """\
from ottla.spark.pipeline import Pipeline

pipeline = Pipeline(bootstrap="{bootstrap}", checkpoints="{directory}/checkpoints")
pipeline.source("orders", topic="{topic}")


@pipeline.step
def broken(orders):
    kept = orders.where("offset > 1")
    return kept.select("nothing")


pipeline.sink("lake", "broken", delta="{directory}/lake")
"""


@pytest.fixture
def file(broker: Broker, topic: str, tmp_path: Path) -> Path:
    for name in (topic, f"{topic}-dlq", f"{topic}-bills"):
        broker.create_topic(name)
    return write(tmp_path / "p.yaml", YAML, broker, topic)


def write(path: Path, text: str, broker: Broker, topic: str) -> Path:
    where = {"bootstrap": broker.bootstrap_servers, "directory": path.parent}
    path.write_text(text.format(topic=topic, **where))
    return path


def told(spark: "SparkSession", file: Path) -> str:
    declared = load(file)
    check(declared)
    with pytest.raises(PipelineError) as caught:
        prepare(declared, spark, is_once=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "line", "sentence"),
    [
        (("    topic: {topic}\n", "    topic: missing\n"), 5, "there is no topic 'missing'"),
        (("SELECT id, customer", "SELECT id, custmer"), 12, "`custmer`"),
        (("2 * amount AS", "2 * amont AS"), 13, "`amont`"),
        (("FROM orders", "FROM oders"), 14, "`oders`"),
        (("2 * amount AS", "2 * * amount AS"), 13, "syntax error"),
        (("topic: {topic}-bills", "topic: missing"), 18, "there is no topic 'missing'"),
        (("key: id", "key: land"), 19, "key is 'land', but the frame's columns are id, customer"),
        (("maxOffsetsPerTrigger", "maxOffsetsPerTriger"), 9, "there is no such option"),
        (("valid: amount", "valid: amont"), 7, "`amont`"),
        (("schema: id long", "schema: id lung"), 6, "lung"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    spark: "SparkSession",
    broker: Broker,
    topic: str,
    file: Path,
    change: tuple[str, str],
    line: int,
    sentence: str,
) -> None:
    assert change[0] in YAML
    write(file, YAML.replace(*change), broker, topic)
    text = told(spark, file)
    assert text.startswith(f"{file}:{line}: "), text
    assert sentence.lower() in text.lower()
    assert "\n" not in text
    assert not (file.parent / "checkpoints").exists()


def test_a_mistake_in_a_function_is_told_with_its_line(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    file = write(tmp_path / "p.py", PYTHON, broker, topic)
    text = told(spark, file)
    assert text.startswith(f"{file}:10: "), text
    assert "`nothing`" in text


def test_a_pipeline_without_mistakes_runs(
    spark: "SparkSession", broker: Broker, topic: str, file: Path
) -> None:
    orders = [json.dumps({"id": n, "customer": "a", "amount": 1.0}) for n in range(100)]
    broker.produce(topic, *orders, "no order")
    declared = load(file)
    check(declared)
    running = Running(declared, prepare(declared, spark, is_once=True))
    while running.is_active:
        running.poll()
    running.poll()
    rows = DeltaTable(str(file.parent / "lake")).to_pyarrow_table().to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(100))
    bills = [json.loads(record.value or b"") for record in broker.records(f"{topic}-bills")]
    assert sorted(bill["id"] for bill in bills) == list(range(100))
    assert [record.value for record in broker.records(f"{topic}-dlq")] == [b"no order"]
    bills_query = running.progress["bills"]
    assert (bills_query.rows, bills_query.lag, bills_query.fraction) == (101, 0, 1.0)
