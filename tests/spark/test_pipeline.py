"""`ottla pipeline run`, as a person runs it: in a process of its own, with a file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ottla.consumer.dead_letters import read_dead_letter
from ottla.testing import Broker
from tests.spark.conftest import need_java
from tests.spark.standalone import Standalone

ORDERS = 200

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(600)]

YAML = """\
name: orders
bootstrap: {bootstrap}
checkpoints: {directory}/checkpoints
spark:
  spark.sql.shuffle.partitions: 2
sources:
  orders:
    topic: orders
    schema: id long not null, customer string, amount double
    valid: amount > 0
    dead_letter: orders.dlq
    watermark: timestamp 1 minute
    options: {{maxOffsetsPerTrigger: 90}}
  customers:
    path: {directory}/customers.json
    format: json
steps:
  enriched: |
    SELECT id, customer, country, amount
    FROM orders JOIN customers USING (customer)
  totals: SELECT country, sum(amount) AS amount, count(*) AS orders FROM enriched GROUP BY country
sinks:
  bills:
    from: enriched
    topic: bills
    key: customer
  lake:
    from: totals
    delta: {directory}/lake
    key: country
  files:
    from: enriched
    parquet: {directory}/files
"""

PYTHON = """\
from ottla.spark.pipeline import Pipeline

pipeline = Pipeline("orders", bootstrap="{bootstrap}", checkpoints="{directory}/checkpoints")
pipeline.source(
    "orders",
    topic="orders",
    schema="id long not null, customer string, amount double",
    valid="amount > 0",
    dead_letter="orders.dlq",
)


@pipeline.step
def doubled(orders):
    from pyspark.sql.functions import udf

    twice = udf(lambda amount: 2 * amount, "double")  # Python in the tasks, too.
    return orders.select("id", twice("amount").alias("amount"))


pipeline.sink("lake", "doubled", delta="{directory}/lake")
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    need_java()
    with Broker(process=True, auto_create_topics_enable=False) as made:
        made.create_topic("orders", 2)
        made.create_topic("orders.dlq")
        made.create_topic("bills", 2)
        produce(made, 0, ORDERS)
        made.produce("orders", "no order", '{"id": 1, "customer": "a", "amount": -1}', key="bad")
        yield made


def produce(broker: Broker, start: int, end: int) -> None:
    orders = [
        json.dumps({"id": number, "customer": "ab"[number % 2], "amount": 1.5})
        for number in range(start, end)
    ]
    broker.produce("orders", *orders)


def written(tmp_path: Path, broker: Broker, text: str, name: str) -> Path:
    file = tmp_path / name
    file.write_text(text.format(bootstrap=broker.bootstrap_servers, directory=tmp_path))
    rows = [{"customer": "a", "country": "NO"}, {"customer": "b", "country": "PE"}]
    (tmp_path / "customers.json").write_text("\n".join(json.dumps(row) for row in rows))
    return file


def start(file: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        _, told = process.communicate(timeout=400)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return process.returncode, told


def lake(tmp_path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(str(tmp_path / "lake")).to_pyarrow_table().to_pylist()
    return rows


def check_all(broker: Broker, tmp_path: Path, orders: int) -> None:
    assert sorted(lake(tmp_path), key=lambda row: row["country"]) == [
        {"country": "NO", "amount": 0.75 * orders, "orders": orders // 2},
        {"country": "PE", "amount": 0.75 * orders, "orders": orders // 2},
    ]
    bills = [json.loads(record.value or b"") for record in broker.records("bills")]
    assert sorted(bill["id"] for bill in bills) == list(range(orders))
    assert bills[0].keys() == {"id", "customer", "country", "amount"}
    assert {record.key for record in broker.records("bills")} == {b"a", b"b"}
    letters = [read_dead_letter(record) for record in broker.records("orders.dlq")]
    assert len(letters) == 2
    assert {letter.group for letter in letters} == {"orders"}


def test_a_backfill_ends_and_goes_on_the_next_time(broker: Broker, tmp_path: Path) -> None:
    file = written(tmp_path, broker, YAML, "orders.yaml")
    status, told = finished(start(file, "--once"))
    assert status == 0, told
    check_all(broker, tmp_path, ORDERS)
    assert "bills: 202 rows in" in told
    assert "lag 0" in told
    produce(broker, ORDERS, 2 * ORDERS)
    status, told = finished(start(file, "--once"))
    assert status == 0, told
    check_all(broker, tmp_path, 2 * ORDERS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_it_is_told_to_stop(
    broker: Broker, tmp_path: Path, number: signal.Signals
) -> None:
    process = start(written(tmp_path, broker, PYTHON, "orders.py"), "--master", "local[2]")
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        is_stored = (tmp_path / "lake/_delta_log").exists() and len(lake(tmp_path)) >= ORDERS
        if is_stored and len(broker.records("orders.dlq")) == 2:
            break
        time.sleep(0.5)
    process.send_signal(number)
    status, told = finished(process)
    assert status == 0, told
    assert "stopped; the next run goes on from here" in told
    assert "Traceback" not in told
    assert sorted(row["id"] for row in lake(tmp_path)) == list(range(ORDERS))
    assert {row["amount"] for row in lake(tmp_path)} == {3.0}


def test_a_mistake_is_told_before_anything_runs(broker: Broker, tmp_path: Path) -> None:
    wrong = YAML.replace("SELECT id, customer, country", "SELECT id, customer, cuntry")
    file = written(tmp_path, broker, wrong, "orders.yaml")
    status, told = finished(start(file, "--once"))
    assert status == 1
    assert f"ottla: {file}:19: " in told
    assert "`cuntry`" in told
    assert "Traceback" not in told
    assert "at org.apache.spark" not in told, "PySpark's own report is not for people"
    assert not (tmp_path / "checkpoints").exists()


def test_the_same_file_runs_on_a_cluster(broker: Broker, tmp_path: Path) -> None:
    file = written(tmp_path, broker, YAML, "orders.yaml")
    before = file.read_text()
    with Standalone(tmp_path) as cluster:
        status, told = finished(start(file, "--once", "--master", cluster.master))
        assert status == 0, told
        used = [path for path in tmp_path.glob("work-*/app-*/*") if path.is_dir()]
    assert len(used) == 2, "both workers had an executor"
    assert file.read_text() == before
    check_all(broker, tmp_path, ORDERS)
