"""Spark's own Kafka connector, from Maven into the cache: what ours is compared with.

Four artifacts, named one by one: the parent pom of the connector points elsewhere.
"""

import os
import shutil
import subprocess
from pathlib import Path

ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
DIRECTORY = Path(os.environ.get("OTTLA_SPARK_LIBS", Path.home() / ".cache/spark-sql-kafka-4.2.0"))

# What somebody sets who has read about it: larger polls, fetches and batches, a little patience.
TUNED_SOURCE = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
}
TUNED_SINK = {"kafka.batch.size": str(256 << 10), "kafka.linger.ms": "5"}


class NoConnectorError(Exception):
    """The jars cannot be had here; the text says why."""


def jars() -> list[Path]:
    """The four jars, fetched if they are not there."""
    found = [DIRECTORY / f"{name}-{version}.jar" for _, name, version in _parts()]
    if all(jar.exists() for jar in found):
        return found
    maven = shutil.which("mvn")
    if maven is None:
        raise NoConnectorError(f"Maven is not installed, and {DIRECTORY} holds no jars")
    for artifact in ARTIFACTS:
        command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={DIRECTORY}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoConnectorError(f"Maven could not fetch {artifact}: {done.stdout[-300:]}")
    return found


def _parts() -> list[list[str]]:
    return [artifact.split(":") for artifact in ARTIFACTS]
