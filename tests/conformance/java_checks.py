"""Runs the checks that are written in Java (`java/src`), in one JVM; each prints one JSON line."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conformance.apache_kafka import LOG4J, QUICK_JVM, classpath, java, missing
from tests.conformance.broker_process import BrokerProcess

SOURCES = Path(__file__).parent / "java/src"
SECONDS_MAX = 110
# A name that ends so stands for several: Java adds one of these words to it.
ENDINGS = {
    "codec ": ("none", "gzip", "snappy", "lz4", "zstd"),
    "acks ": ("0", "1", "all"),
    "protocol ": ("classic", "consumer"),
    "with assignor ": ("RoundRobin", "Sticky", "CooperativeSticky"),
    "broker's assignor ": ("uniform", "range"),
}

Results = dict[str, str | None]


def names(classes: Sequence[str]) -> list[str]:
    """The checks that these classes define."""
    found: list[str] = []
    for one in classes:
        source = (SOURCES / f"{one}.java").read_text()
        for name in re.findall(r'Checks\.(?:check|together)\("([^"]+)"', source):
            words = next((words for end, words in ENDINGS.items() if name.endswith(end)), ("",))
            found += [name + word for word in words]
    return found


def run(broker: BrokerProcess, classes: Sequence[str], directory: Path) -> Results:
    """What each check ended with: None, or the failure. What is compiled goes to `directory`."""
    compile_into(directory)
    done = subprocess.run(
        [
            *(java(), *QUICK_JVM, f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}"),
            *("-cp", f"{directory}:{classpath()}", "Checks"),
            *(broker.bootstrap, str(broker.data_directory), broker.flavour.name, *classes),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if '"failure":' in line]
    assert lines, f"the JVM printed nothing: {done.stderr}"
    return {line["name"]: line["failure"] for line in lines}


def compile_into(directory: Path) -> None:
    if shutil.which("javac") is None:
        missing("javac (a JDK, 17 or newer) is not installed.")
    sources = map(str, sorted(SOURCES.glob("*.java")))
    subprocess.run(["javac", "-cp", classpath(), "-d", str(directory), *sources], check=True)
    (directory / "log4j2.xml").write_text(LOG4J.format(level="OFF"))


def expect_passed(name: str, results: Results) -> None:
    assert name in results, "the JVM ended before this check"
    if results[name] is not None:
        pytest.fail(str(results[name]), pytrace=False)
