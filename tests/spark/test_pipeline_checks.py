"""Pipelines are checked by Spark and the brokers first; mistakes are told with their line."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from ottla.spark.pipeline import load
from ottla.spark.pipelines.model import PipelineError, PipelineErrors, check
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


def run_once(spark: "SparkSession", file: Path) -> Running:
    declared = load(file)
    check(declared)
    running = Running(declared, prepare(declared, spark, is_once=True).queries)
    wait_for_end(running)
    return running


def wait_for_end(running: Running) -> None:
    while running.is_active:
        running.poll()
        time.sleep(0.05)
    running.poll()


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
    running = Running(declared, prepare(declared, spark, is_once=True).queries)
    wait_for_end(running)
    rows = DeltaTable(str(file.parent / "lake")).to_pyarrow_table().to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(100))
    bills = [json.loads(record.value or b"") for record in broker.records(f"{topic}-bills")]
    assert sorted(bill["id"] for bill in bills) == list(range(100))
    assert [record.value for record in broker.records(f"{topic}-dlq")] == [b"no order"]
    bills_query = running.progress["bills"]
    assert (bills_query.rows, bills_query.lag, bills_query.fraction) == (101, 0, 1.0)


COPY = """\
name: {name}
bootstrap: {bootstrap}
checkpoints: {directory}/checkpoints
sources:
  orders: {{topic: {topic}}}
sinks:
  copy: {{from: orders, topic: {target}}}
"""
ZERO = "integer division or modulo by zero"
CHECKPOINTED = ("metadata", "ottla-query.json")


@pytest.fixture
def copies(broker: Broker, topic: str) -> list[str]:
    broker.create_topic(topic)
    broker.produce(topic, "one", "two")
    targets = [f"{topic}-a", f"{topic}-b"]
    for target in targets:
        broker.create_topic(target)
    return targets


def copy_to(target: str, tmp_path: Path, broker: Broker, topic: str, name: str = "a") -> Path:
    file = tmp_path / f"{name}.yaml"
    where = {"bootstrap": broker.bootstrap_servers, "directory": tmp_path}
    file.write_text(COPY.format(name=name, topic=topic, target=target, **where))
    return file


def test_pipelines_of_one_directory_have_checkpoints_of_their_own(
    spark: "SparkSession", broker: Broker, topic: str, copies: list[str], tmp_path: Path
) -> None:
    for name, target in zip("ab", copies, strict=True):
        running = run_once(spark, copy_to(target, tmp_path, broker, topic, name))
        assert running.progress["copy"].rows == 2
        assert [record.value for record in broker.records(target)] == [b"one", b"two"]
        assert all((tmp_path / "checkpoints" / name / "copy" / f).is_file() for f in CHECKPOINTED)


def test_a_checkpoint_refuses_a_query_with_another_target(
    spark: "SparkSession", broker: Broker, topic: str, copies: list[str], tmp_path: Path
) -> None:
    run_once(spark, copy_to(copies[0], tmp_path, broker, topic))
    text = told(spark, copy_to(copies[1], tmp_path, broker, topic))
    assert f"is of the query from topic {topic} to topic {copies[0]}, and this one is" in text
    assert f"from topic {topic} to topic {copies[1]}" in text
    text = told(spark, copy_to(copies[0], tmp_path, broker, copies[1]))
    assert f"and this one is from topic {copies[1]} to" in text


def test_a_checkpoint_in_its_former_place_is_refused_and_goes_on_when_moved(
    spark: "SparkSession", broker: Broker, topic: str, copies: list[str], tmp_path: Path
) -> None:
    file = copy_to(copies[0], tmp_path, broker, topic)
    run_once(spark, file)
    now, former = tmp_path / "checkpoints/a/copy", tmp_path / "checkpoints/copy"
    now.rename(former)
    (former / "ottla-query.json").unlink()
    assert f"{former} is a checkpoint of an earlier version" in told(spark, file)
    assert f"move it to {now}" in told(spark, file)
    former.rename(now)
    broker.produce(topic, "three")
    assert run_once(spark, file).progress["copy"].rows == 1
    assert len(broker.records(copies[0])) == 3
    assert (now / "ottla-query.json").is_file()


def test_a_check_changes_nothing_and_names_what_would_be_created(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with Broker(auto_create_topics_enable=True) as broker:
        for name in ("orders", "orders-bills"):
            broker.create_topic(name)
        text = YAML.replace("{topic}-bills", "order-bills").replace("{topic}-dlq", "dead")
        declared = load(write(tmp_path / "p.yaml", text, broker, "orders"))
        check(declared)
        plan = prepare(declared, spark, is_once=True)
        assert plan.notes == [
            "topic 'dead' will be created",
            "topic 'order-bills' will be created; did you mean 'orders-bills'?",
        ]
        assert broker.topics() == ["orders", "orders-bills"]
        assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]


def test_all_mistakes_are_told_at_once(
    spark: "SparkSession", broker: Broker, topic: str, file: Path
) -> None:
    wrong = YAML.replace("    topic: {topic}\n", "    topic: missing\n")
    wrong = wrong.replace("2 * amount AS", "2 * amont AS").replace("{topic}-bills", "neither")
    wrong = wrong.replace("sinks:\n", "sinks:\n  raw: {{from: orders, topic: nowhere}}\n")
    declared = load(write(file, wrong, broker, topic))
    check(declared)
    with pytest.raises(PipelineErrors) as caught:
        prepare(declared, spark, is_once=True)
    assert [error.line for error in caught.value.errors] == [5, 13, 16]


def test_the_error_of_a_task_is_a_sentence_with_the_line_of_the_file(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "one")
    text = PYTHON.replace(
        '    kept = orders.where("offset > 1")\n    return kept.select("nothing")',
        "    from pyspark.sql.functions import udf\n"
        '    return orders.select(udf(lambda o: 1 // o, "long")("offset").alias("x"))',
    )
    file = write(tmp_path / "p.py", text, broker, topic)
    with pytest.raises(PipelineError) as caught:
        run_once(spark, file)
    assert str(caught.value) == f"{file}:10: lake: ZeroDivisionError: {ZERO}"
    assert "Traceback" in (caught.value.trace or "")


def test_a_session_on_this_machine_shuffles_into_a_partition_per_core(
    spark: "SparkSession",
) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
