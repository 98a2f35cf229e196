"""Spark Connect and Declarative Pipelines find the format by its name, without a registration."""

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from ottla.spark.sessions.spark_home import light_home
from ottla.testing import Broker
from tests.conformance.broker_process import free_ports
from tests.spark.conftest import need_java

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(900)]

PIPELINE = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.getActiveSession()


@dp.table
def orders():
    return (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", "{bootstrap}")
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("cast(value as string) as value", "offset")
    )


@dp.materialized_view
def counted():
    return spark.read.table("orders").groupBy().count()


dp.create_sink("copies", "ottla", {{"kafka.bootstrap.servers": "{bootstrap}", "topic": "copies"}})


@dp.append_flow(target="copies")
def copy():
    return spark.readStream.table("orders").select("value")
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    need_java()
    with Broker(process=True) as made:
        made.create_topic("orders", partitions=2)
        made.create_topic("copies")
        for partition in (0, 1):
            made.produce("orders", *(f"{partition}-{n}" for n in range(50)), partition=partition)
        yield made


def environment(directory: Path) -> dict[str, str]:
    return {
        **os.environ,
        "SPARK_HOME": str(light_home(Path(pyspark.__file__).parent)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(directory),
    }


def test_a_client_of_spark_connect_reads_and_streams(broker: Broker, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [
            *(str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--conf", f"spark.connect.grpc.binding.port={port}"),
            *("--conf", "spark.ui.enabled=false", "spark-internal"),
        ],
        env=environment(tmp_path),
        stdout=(tmp_path / "server.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 240
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert server.poll() is None, (tmp_path / "server.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the server did not start in time"
            time.sleep(0.5)
        client = textwrap.dedent(f"""
            from pyspark.sql import SparkSession
            spark = SparkSession.builder.remote("sc://127.0.0.1:{port}").getOrCreate()
            options = {{"kafka.bootstrap.servers": "{broker.bootstrap_servers}",
                       "subscribe": "orders"}}
            print("batch", spark.read.format("ottla").options(**options).load().count())
            stream = spark.readStream.format("ottla").options(**options)
            stream = stream.option("startingOffsets", "earliest").load()
            query = (stream.writeStream.format("memory").queryName("rows")
                     .option("checkpointLocation", r"{tmp_path / "checkpoint"}")
                     .trigger(availableNow=True).start())
            query.awaitTermination()
            print("stream", spark.table("rows").count())
            spark.stop()
        """)
        done = subprocess.run(
            [sys.executable, "-c", client],
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert "batch 100" in done.stdout
        assert "stream 100" in done.stdout
    finally:
        server.terminate()
        server.wait(60)


def test_a_declarative_pipeline_reads_and_writes_topics(broker: Broker, tmp_path: Path) -> None:
    code = tmp_path / "transformations"
    code.mkdir()
    (code / "pipeline.py").write_text(PIPELINE.format(bootstrap=broker.bootstrap_servers))
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: orders\n"
        f"storage: {(tmp_path / 'storage').as_uri()}\n"
        "libraries:\n  - glob:\n      include: transformations/**\n"
    )
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.ui.enabled false\n"
        f"spark.sql.warehouse.dir {tmp_path / 'warehouse'}\n"
        "spark.sql.catalogImplementation hive\n"
        "spark.hadoop.javax.jdo.option.ConnectionURL "
        f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true\n"
    )
    done = subprocess.run(
        [str(Path(sys.executable).parent / "spark-pipelines"), "run"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    written = sorted(bytes(record.value or b"").decode() for record in broker.records("copies"))
    assert written == sorted(f"{partition}-{n}" for partition in (0, 1) for n in range(50))
