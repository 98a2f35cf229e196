"""Spark's own Kafka connector, unchanged, on our broker: batch, streams and Real-time Mode."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.spark_connector import NoConnectorError, jars

from ottla.testing import Broker
from tests.conformance.apache_kafka import missing
from tests.spark.conftest import need_java

pytestmark = [pytest.mark.own_jvm, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def connector() -> str:
    need_java()
    try:
        return ",".join(map(str, jars()))
    except NoConnectorError as failure:
        missing(f"Spark's Kafka connector cannot be had: {failure}")
        raise


@pytest.fixture(scope="module")
def seen(connector: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the job saw, by what it did; all of it in one JVM."""
    directory = tmp_path_factory.mktemp("connector")
    with Broker(process=True, num_partitions=3) as broker:
        broker.create_topic("source", partitions=3)
        for partition in range(3):
            broker.produce("source", *(f"{partition}-{n}" for n in range(100)), partition=partition)
        for name in ("copied", "streamed", "realtime"):
            broker.create_topic(name, partitions=3)
        order = {
            "bootstrap": broker.bootstrap_servers,
            "jars": connector,
            "directory": str(directory),
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.connector_job", json.dumps(order)],
            cwd=ROOT,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
        for name in ("copied", "streamed", "realtime"):
            found[name] = sorted(bytes(r.value or b"").decode() for r in broker.records(name))
    return found


def everything() -> list[str]:
    return sorted(f"{partition}-{n}" for partition in range(3) for n in range(100))


def test_it_reads_a_batch(seen: dict[str, list[str]]) -> None:
    assert seen["batch"] == everything()


def test_it_reads_by_time_and_by_offset(seen: dict[str, list[str]]) -> None:
    assert seen["by_time"] == everything()
    assert seen["by_offset"] == [f"0-{n}" for n in range(95, 100)]


def test_it_writes_a_batch(seen: dict[str, list[str]]) -> None:
    assert seen["copied"] == everything()


def test_it_streams_in_and_out(seen: dict[str, list[str]]) -> None:
    assert seen["streamed"] == everything()


def test_real_time_mode_works(seen: dict[str, list[str]]) -> None:
    assert set(seen["realtime"]) == set(everything())
