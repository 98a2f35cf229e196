"""A session of the user's own, in a process that imports nothing of ours: the format is found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark.sessions.session import PUSHDOWN_VARIABLE
from ottla.testing import Broker
from tests.spark.conftest import need_java

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(600)]

COPY = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
address = {{"kafka.bootstrap.servers": "{bootstrap}"}}
rows = spark.read.format("ottla").options(subscribe="source", **address).load()
rows.drop("partition").write.format("ottla").options(topic="batch", **address).mode("append").save()
stream = spark.readStream.format("ottla").options(subscribe="source", **address)
sink = stream.option("startingOffsets", "earliest").load().writeStream.format("ottla")
sink = sink.options(topic="stream", checkpointLocation="checkpoint", **address)
sink.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def test_it_reads_and_writes_and_is_told_once_how_to_be_faster(tmp_path: Path) -> None:
    need_java()
    with Broker(process=True) as broker:
        for name in ("source", "batch", "stream"):
            broker.create_topic(name, partitions=2)
        broker.produce("source", *(f"row {n}" for n in range(100)))
        done = subprocess.run(
            [sys.executable, "-c", COPY.format(bootstrap=broker.bootstrap_servers)],
            cwd=tmp_path,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        for name in ("batch", "stream"):
            found = {bytes(record.value or b"").decode() for record in broker.records(name)}
            assert found == {f"row {n}" for n in range(100)}
    for sentence in (
        "rows are written at least once",
        "a session of ottla.spark.session() is faster",
    ):
        assert done.stderr.count(sentence) == 1, done.stderr[-3000:]


def plain_environment() -> dict[str, str]:
    """Without what a session of ours may have left in this process."""
    ours = (PUSHDOWN_VARIABLE, "SPARK_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "PYSPARK_PYTHON": sys.executable}
