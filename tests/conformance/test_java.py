"""Apache Kafka's own Java producer, consumer, admin client and console tools, in one JVM.

The checks are written in Java (`java/src`) and print one JSON line each; here every line becomes a
test of its own.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conformance.apache_kafka import LOG4J, QUICK_JVM, classpath, java, missing
from tests.conformance.broker_process import BrokerProcess

SOURCES = sorted((Path(__file__).parent / "java/src").glob("*.java"))
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("0", "1", "all")


def names() -> list[str]:
    found: list[str] = []
    for source in SOURCES:
        for name in re.findall(r'Checks\.check\("([^"]+)"', source.read_text()):
            endings = {"codec ": CODECS, "acks ": ACKS}
            for ending, values in endings.items():
                if name.endswith(ending):
                    found += [name + value for value in values]
                    break
            else:
                found.append(name)
    return found


@pytest.fixture(scope="session")
def java_results(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str | None]:
    """What each check ended with: None, or the failure."""
    if shutil.which("javac") is None:
        missing("javac (a JDK, 17 or newer) is not installed.")
    directory = tmp_path_factory.mktemp("java")
    subprocess.run(
        ["javac", "-cp", classpath(), "-d", str(directory), *map(str, SOURCES)], check=True
    )
    (directory / "log4j2.xml").write_text(LOG4J.format(level="OFF"))
    done = subprocess.run(
        [
            *(java(), *QUICK_JVM, f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}"),
            *("-cp", f"{directory}:{classpath()}", "Checks"),
            *(broker.bootstrap, str(broker.data_directory)),
        ],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if '"failure":' in line]
    assert lines, f"the JVM printed nothing: {done.stderr}"
    return {line["name"]: line["failure"] for line in lines}


@pytest.mark.parametrize("name", names())
def test_java(name: str, java_results: dict[str, str | None]) -> None:
    assert name in java_results, "the JVM ended before this check"
    if java_results[name] is not None:
        pytest.fail(str(java_results[name]), pytrace=False)
