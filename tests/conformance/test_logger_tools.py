"""Levels of a broker's loggers, by kafka-configs and by `ottla loggers`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.apache_kafka import run_class
from tests.conformance.broker_process import BrokerProcess, Flavour

# One that logs something whenever it is told to, in each flavour.
PACKAGES = {"ottla": "ottla.broker.wire", "kafka": "kafka.server.KafkaApis"}


@pytest.fixture(scope="module")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(flavour, tmp_path_factory.mktemp("loggers")).start()
    yield process
    process.kill()


@pytest.fixture
def name(flavour: Flavour) -> str:
    return PACKAGES[flavour.name]


def kafka_configs(broker: BrokerProcess, *how: str, status: int = 0) -> str:
    where = ("--bootstrap-server", broker.bootstrap)
    whose = ("--entity-type", "broker-loggers", "--entity-name", "1")
    ended = run_class("kafka.admin.ConfigCommand", *where, *whose, *how)
    said = ended.stdout + ended.stderr
    assert isinstance(said, str)
    assert ended.returncode == status, said
    return said


def level(broker: BrokerProcess, name: str) -> str:
    page = kafka_configs(broker, "--describe")
    (found,) = re.findall(rf"^  {re.escape(name)}=(\w+) ", page, re.MULTILINE)
    assert isinstance(found, str)
    return found


@pytest.mark.timeout(180)
def test_kafka_configs_shows_sets_and_removes_levels(broker: BrokerProcess, name: str) -> None:
    assert (level(broker, "root"), level(broker, name)) == ("INFO", "INFO")
    said = kafka_configs(broker, "--alter", "--add-config", f"{name}=DEBUG")
    assert "Completed updating config for broker-logger 1." in said
    assert (level(broker, "root"), level(broker, name)) == ("INFO", "DEBUG")
    kafka_configs(broker, "--alter", "--delete-config", name)
    assert level(broker, name) == "INFO"


@pytest.mark.timeout(180)
def test_kafka_configs_is_refused_unknown_loggers_and_levels(
    broker: BrokerProcess, name: str
) -> None:
    said = kafka_configs(broker, "--alter", "--add-config", f"{name}=LOUD", status=1)
    assert f"Cannot set the log level of {name} to LOUD" in said
    said = kafka_configs(broker, "--alter", "--add-config", "no.such=DEBUG", status=1)
    assert "Invalid broker logger(s): no.such" in said


def ottla(broker: BrokerProcess, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ottla.cli.main", "loggers", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap},
        timeout=30,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_ottla_loggers_shows_sets_and_unsets_levels(broker: BrokerProcess, name: str) -> None:
    assert "WARN" in ottla(broker, "set", name, "warn")
    (shown,) = json.loads(ottla(broker, "list", name, "--exact", "--json"))
    assert shown == {"broker": 1, "logger": name, "level": "WARN"}
    ottla(broker, "unset", name)
    assert name in ottla(broker, "list")
    (shown,) = json.loads(ottla(broker, "list", name, "--exact", "--json"))
    assert shown["level"] == "INFO"
    assert "no logger 'no.such'" in ottla(broker, "set", "no.such", "warn", status=1)


def test_a_level_is_in_force_at_once_and_gone_after_a_restart(
    flavour: Flavour, tmp_path: Path
) -> None:
    if flavour.name != "ottla":
        pytest.skip("how Kafka's log reads is its own")
    process = BrokerProcess(flavour, tmp_path).start()
    try:
        ottla(process, "set", "ottla.broker", "error")
        ottla(process, "set", "ottla.broker.handlers", "debug")
        assert "INFO broker." in process.log_file.read_text()
        process.stop()
        assert "stopped" not in process.log_file.read_text().splitlines()[-1]
        process.start()
        assert '"level": "INFO"' in ottla(process, "list", "ottla.broker", "--exact", "--json")
    finally:
        process.kill()
