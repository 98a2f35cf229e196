"""The brokers that are compared: Ottla, and Apache Kafka 4.3.1 from its jars.

Both run with their default settings, each with one data directory on the same disk. What is set
apart from addresses only makes deleted data vanish soon, so that rounds do not fill the disk.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.processes import ServerProcess, answers_metadata
from benchmarks.programs import BUILD

KAFKA_VERSION = "4.3.1"
CLUSTER_ID = "aZSxcrjtRrO_dWhnyP37Bw"
# What Kafka's own start script gives the JVM.
JVM = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
LOG4J = """<Configuration status="WARN">
  <Appenders><Console name="C"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="C"/></Root></Loggers>
</Configuration>
"""
SECONDS_MAX = 30
POLL_SECONDS = 0.005


class Peer:
    """A broker of either kind. `start` gives the seconds until it answers Metadata."""

    name = ""

    def __init__(self, directory: Path, port: int, more: Mapping[str, str] | None = None) -> None:
        """`more` are settings that both kinds get alike."""
        self.more = dict(more or {})
        self.directory = directory
        self.data = directory / "data"
        self.port = port
        self.bootstrap = f"127.0.0.1:{port}"
        directory.mkdir(parents=True, exist_ok=True)
        self.process = ServerProcess(self.command(), port, directory / "log", self.environment())
        self._admin: AdminClient | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.port + 1}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.port + 1}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.data),
            "log.segment.delete.delay.ms": "1000",  # At 0 Kafka looks a thousand times a second.
            "offsets.topic.replication.factor": "1",
        }

    def write_properties(self) -> Path:
        properties = self.directory / "server.properties"
        settings = self.settings() | self.more
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        properties.write_text("".join(lines))
        return properties

    def start(self) -> float:
        return self.process.start(answers_metadata, POLL_SECONDS)

    def stop(self) -> None:
        self._admin = None
        self.process.stop()

    def create_topic(self, name: str, partitions: int) -> None:
        """Create it and wait until every partition is led."""
        self._clients().create_topics([NewTopic(name, partitions, 1)])[name].result(SECONDS_MAX)
        asked = {TopicPartition(name, index): OffsetSpec.latest() for index in range(partitions)}
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                for answer in self._clients().list_offsets(asked).values():
                    answer.result(SECONDS_MAX)
            except KafkaException:
                assert time.monotonic() < deadline, f"{self.name} did not make {name} in time"
                time.sleep(0.05)
            else:
                return

    def delete_topic(self, name: str, *, until_gone: bool = False) -> None:
        """Delete it, and wait until its files are gone if the next round shall have their pages."""
        try:
            self._clients().delete_topics([name])[name].result(SECONDS_MAX)
        except KafkaException as error:
            raise SystemExit(f"{self.name} did not delete {name}: {error}") from error
        deadline = time.monotonic() + SECONDS_MAX
        while until_gone and any(self.data.glob(f"{name}[-.]*")):
            assert time.monotonic() < deadline, f"{self.name} left files of {name}"
            time.sleep(0.05)

    def _clients(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        return self._admin


class Ottla(Peer):
    name = "ottla"

    def command(self) -> list[str]:
        properties = self.write_properties()
        return [sys.executable, "-m", "ottla.cli.main", "start", str(properties)]

    def environment(self) -> dict[str, str]:
        """With byte code kept, as on a user's machine, whatever this shell says."""
        environment = super().environment() | {"PYTHONPYCACHEPREFIX": str(BUILD / "pycache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return environment


class Kafka(Peer):
    name = "kafka"

    def command(self) -> list[str]:
        properties, log4j = self.write_properties(), self.directory / "log4j2.xml"
        log4j.write_text(LOG4J)
        return [
            *(java(), *JVM, f"-Dlog4j2.configurationFile={log4j}"),
            *("-cp", classpath(), "kafka.Kafka", str(properties)),
        ]

    def settings(self) -> dict[str, str]:
        return super().settings() | {
            "log.initial.task.delay.ms": "500",  # Else nothing is deleted for half a minute.
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }

    def start(self) -> float:
        """Format first if need be, which Kafka leaves to a tool and the time leaves out."""
        if not (self.data / "meta.properties").exists():
            self.format()
        return super().start()

    def format(self) -> float:
        started_at = time.perf_counter()
        properties = self.directory / "server.properties"
        subprocess.run(
            [
                *(java(), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classpath()),
                *("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)),
            ],
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - started_at


def java() -> str:
    found = shutil.which("java")
    if found is None:
        raise SystemExit("Apache Kafka needs Java 17: install it, or run with --peers ottla.")
    return found


def classpath() -> str:
    libs = Path(os.environ.get("OTTLA_KAFKA_LIBS", Path.home() / f".cache/kafka-{KAFKA_VERSION}"))
    if not (libs / f"kafka_2.13-{KAFKA_VERSION}.jar").exists():
        raise SystemExit(f"{libs} holds no jars of Apache Kafka: run `make jars` first.")
    return f"{libs}/*"
