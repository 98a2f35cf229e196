"""Apache Kafka from its own jars: the reference broker, its tools, and the Java clients.

The jars are fetched once by Maven (`java/pom.xml`) into OTTLA_KAFKA_LIBS, by default
`~/.cache/kafka-4.3.1`. Where Java or the jars cannot be had, a test is skipped with the reason; in
CI (the environment variable CI is set) it fails instead, so that a check never vanishes silently.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

VERSION = "4.3.1"
CLUSTER_ID = "aZSxcrjtRrO_dWhnyP37Bw"
HERE = Path(__file__).parent
QUICK_JVM = ["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
LOG4J = """<Configuration status="WARN">
  <Appenders><Console name="C"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="{level}"><AppenderRef ref="C"/></Root></Loggers>
</Configuration>
"""


class ApacheKafka:
    """The reference. `format_options` are given to Kafka's storage tool."""

    name = "kafka"

    def __init__(self, format_options: tuple[str, ...] = ()) -> None:
        self.format_options = format_options

    def prepare(self, properties: Path) -> None:
        settings = dict(line.split("=", 1) for line in properties.read_text().splitlines())
        with properties.open("a") as more:
            # What only the reference needs, to be quick and to fit one node.
            more.write("group.initial.rebalance.delay.ms=0\n")
            more.write("share.coordinator.state.topic.replication.factor=1\n")
            more.write("share.coordinator.state.topic.min.isr=1\n")
            # It is not registered again before the session of the process that was killed is over.
            more.write("broker.session.timeout.ms=2000\n")
            more.write("broker.heartbeat.interval.ms=400\n")
        if not (Path(settings["log.dirs"].split(",")[0]) / "meta.properties").exists():
            storage_tool("format", "-t", CLUSTER_ID, "-c", str(properties), *self.format_options)

    def command(self, properties: Path) -> list[str]:
        log4j = properties.parent / "log4j2.xml"
        log4j.write_text(LOG4J.format(level="INFO"))
        return [
            *(java(), *QUICK_JVM, "-Xmx768m", f"-Dlog4j2.configurationFile={log4j}"),
            *("-cp", classpath(), "kafka.Kafka", str(properties)),
        ]

    def environment(self, directory: Path) -> dict[str, str]:
        return dict(os.environ)


def missing(what: str) -> None:
    """Skip on a user's machine; fail where nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@functools.cache
def java() -> str:
    found = shutil.which("java")
    if found is None:
        missing("Java 17 or newer is not installed, so Apache Kafka cannot run.")
    return str(found)


@functools.cache
def classpath() -> str:
    """All of Kafka's jars, fetched on first use."""
    libs = Path(os.environ.get("OTTLA_KAFKA_LIBS", Path.home() / f".cache/kafka-{VERSION}"))
    if not (libs / f"kafka_2.13-{VERSION}.jar").exists():
        maven = shutil.which("mvn")
        if maven is None:
            missing(f"Maven is not installed and {libs} holds no jars of Apache Kafka.")
        fetch = subprocess.run(
            [
                *(str(maven), "-q", "-B", "-f", str(HERE / "java/pom.xml")),
                *("dependency:copy-dependencies", "-DincludeScope=runtime"),
                f"-DoutputDirectory={libs}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if fetch.returncode:
            missing(f"Maven could not fetch Apache Kafka's jars: {fetch.stdout[-500:]}")
    return f"{libs}/*"


def storage_tool(*arguments: str) -> None:
    done = run_class("kafka.tools.StorageTool", *arguments)
    assert done.returncode == 0, f"kafka-storage {arguments}: {done.stdout}{done.stderr}"


def run_class(name: str, *arguments: str, text: str | None = None, seconds_max: float = 60):  # noqa: ANN201
    """Run a class of Kafka's jars in a JVM of its own."""
    return subprocess.run(
        [java(), *QUICK_JVM, "-cp", classpath(), name, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
