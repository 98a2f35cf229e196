"""`ottla groups`, `ottla consume --group` and `ottla dlq`, as a person or a script uses them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from ottla.client.blocking import Client, Outgoing
from ottla.client.message import Message
from ottla.consumer.dead_letters import headers_for
from tests.conformance.apache_kafka import run_class
from tests.conformance.broker_process import BrokerProcess, Flavour

Run = Callable[..., subprocess.CompletedProcess[bytes]]
OTTLA = [sys.executable, "-m", "ottla.cli.main"]
SECONDS_MAX = 40
QUICK = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Its groups do not wait for members that may come."""
    process = BrokerProcess(flavour, tmp_path_factory.mktemp("groups"), QUICK)
    process.start()
    yield process
    process.stop()


@pytest.fixture
def environment(bootstrap: str) -> dict[str, str]:
    return {**os.environ, "OTTLA_BOOTSTRAP": bootstrap}


@pytest.fixture
def ottla(environment: dict[str, str]) -> Run:
    def run(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*OTTLA, *arguments], capture_output=True, env=environment, timeout=SECONDS_MAX
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    return run


@pytest.fixture
def json_of(ottla: Run) -> Callable[..., Any]:
    return lambda *arguments: json.loads(ottla(*arguments, "--json").stdout)


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """A topic of two partitions with ten records each, written a minute ago."""
    then = int(time.time() * 1000) - 60_000
    with Client(bootstrap) as client:
        client.run(client.admin.create_topic(topic, partitions=2))
        client.write(
            topic,
            [
                Outgoing(b"%d" % number, partition=number % 2, timestamp_ms=then + number)
                for number in range(20)
            ],
        )
    return topic


@contextmanager
def reading(
    bootstrap: str, group: str, topic: str, count: int, protocol: str = "classic"
) -> Iterator[Consumer]:
    """A member of the group that has read and committed so many records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "reader",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS_MAX
    while count:
        assert time.monotonic() < deadline, "too few records came"
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            count -= 1
            consumer.commit(message, asynchronous=False)
    yield consumer
    consumer.close()


@pytest.mark.parametrize(("protocol", "assignor"), [("classic", "range"), ("consumer", "uniform")])
def test_a_group_is_listed_and_described_while_it_reads_and_after(
    bootstrap: str,
    json_of: Callable[..., Any],
    ottla: Run,
    filled: str,
    protocol: str,
    assignor: str,
) -> None:
    group = f"{filled}-g"
    with reading(bootstrap, group, filled, 15, protocol):
        (told,) = json_of("groups", "describe", group)
        assert (told["state"], told["type"], told["assignor"]) == ("Stable", protocol, assignor)
        (member,) = told["members"]
        assert member["client_id"] == "reader"
        assert member["assignment"] == {filled: [0, 1]}
        assert told["lag_records"] == 5
        assert 55 < told["lag_seconds"] < 55 + SECONDS_MAX
        listed = {item["group"]: item for item in json_of("groups", "list")}
        assert (listed[group]["state"], listed[group]["type"]) == ("Stable", protocol)
        assert group not in [
            item["group"] for item in json_of("groups", "list", "--state", "Empty")
        ]
    (told,) = json_of("groups", "describe", group)
    assert (told["state"], told["members"]) == ("Empty", [])
    assert sum(row["committed_offset"] for row in told["partitions"]) == 15
    table = ottla("groups", "describe", group).stdout.decode()
    assert "Behind by 5 records, 1 min" in table
    assert group in ottla("groups", "list").stdout.decode()


def test_a_reset_is_shown_refused_and_done(
    bootstrap: str, json_of: Callable[..., Any], ottla: Run, filled: str
) -> None:
    group = f"{filled}-g"
    arguments = ("groups", "reset-offsets", group, "--topic", filled)
    with reading(bootstrap, group, filled, 20):
        refused = ottla(*arguments, "--to-earliest", "--execute", status=1)
        assert b"stop its consumers first" in refused.stderr

    def offsets() -> list[int]:
        (told,) = json_of("groups", "describe", group)
        return [row["committed_offset"] for row in told["partitions"]]

    assert b"Would be" in ottla(*arguments, "--to-earliest").stdout
    assert offsets() == [10, 10]
    ottla(*arguments, "--to-offset", "4", "--execute")
    assert offsets() == [4, 4]
    ottla(
        *("groups", "reset-offsets", group, "--topic", f"{filled}:1", "--shift-by", "3"),
        "--execute",
    )
    assert offsets() == [4, 7]
    ottla(*arguments, "--by-duration", "PT1H", "--execute")
    assert offsets() == [0, 0]
    ottla(*arguments, "--to-datetime", "-1s", "--execute")
    assert offsets() == [10, 10]
    assert group.encode() in ottla("groups", "describe", group[:-1], status=1).stderr
    ottla("groups", "delete", group)
    assert b"no group" in ottla("groups", "describe", group, status=1).stderr
    assert b"no group" in ottla("groups", "delete", group, status=1).stderr


def test_offsets_of_one_topic_can_be_forgotten(
    bootstrap: str, json_of: Callable[..., Any], ottla: Run, filled: str
) -> None:
    group = f"{filled}-g"
    with reading(bootstrap, group, filled, 20):
        pass
    assert b"2 offsets deleted" in ottla("groups", "delete", group, "--topic", filled).stdout
    done = ottla("groups", "describe", group, "--json", status=0)
    assert json.loads(done.stdout)[0]["partitions"] == []


def test_files_are_exchanged_with_kafkas_own_tool(
    bootstrap: str, json_of: Callable[..., Any], ottla: Run, filled: str, tmp_path: Path
) -> None:
    group = f"{filled}-g"
    arguments = ("groups", "reset-offsets", group)
    ottla(*arguments, "--topic", filled, "--to-offset", "3", "--execute")
    saved = tmp_path / "offsets.csv"
    saved.write_bytes(ottla(*arguments, "--all-topics", "--to-current", "--export").stdout)
    ottla(*arguments, "--topic", filled, "--to-latest", "--execute")
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    common = ("--bootstrap-server", bootstrap, "--group", group, "--reset-offsets")
    done = run_class(tool, *common, "--from-file", str(saved), "--execute", "--export")
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = json_of("groups", "describe", group)
    assert [row["committed_offset"] for row in told["partitions"]] == [3, 3]
    written = run_class(
        tool, *common, "--topic", filled, "--shift-by", "1", "--dry-run", "--export"
    )
    saved.write_text(written.stdout)
    ottla(*arguments, "--from-file", str(saved), "--execute")
    (told,) = json_of("groups", "describe", group)
    assert [row["committed_offset"] for row in told["partitions"]] == [4, 4]


def test_consuming_as_a_member_goes_on_where_it_stopped(
    json_of: Callable[..., Any], ottla: Run, filled: str
) -> None:
    arguments = ("consume", filled, "--group", f"{filled}-g")
    first = ottla(*arguments, "--from-beginning", "-n", "7").stdout.split()
    rest = ottla(*arguments, "--to-end").stdout.split()
    assert sorted(map(int, first + rest)) == list(range(20))
    (told,) = json_of("groups", "describe", f"{filled}-g")
    assert (told["lag_records"], told["state"]) == (0, "Empty")


def test_two_members_share_and_an_interrupt_commits(
    json_of: Callable[..., Any], ottla: Run, environment: dict[str, str], filled: str
) -> None:
    group = f"{filled}-g"
    command = [*OTTLA, "consume", filled, "--group", group, "--from-beginning"]
    members = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            assert time.monotonic() < deadline, "the two never shared the partitions"
            done = subprocess.run(
                [*OTTLA, "groups", "describe", group, "--json"],
                capture_output=True,
                env=environment,
            )
            told = json.loads(done.stdout)[0] if done.returncode == 0 else {"members": []}
            shares = [member["assignment"] for member in told["members"]]
            if len(shares) == 2 and all(shares) and told["lag_records"] == 0:
                break
        ottla("produce", filled, "one", "more", "--partition", "0")
        time.sleep(1)
    finally:
        for member in members:
            member.send_signal(signal.SIGINT)
        shown = [member.communicate(timeout=SECONDS_MAX) for member in members]
    assert [member.returncode for member in members] == [0, 0], shown
    values = [value for out, _ in shown for value in out.split()]
    assert {b"%d" % number for number in range(20)} | {b"one", b"more"} == set(values)
    (told,) = json_of("groups", "describe", group)
    assert (told["lag_records"], told["members"]) == (0, [])


def test_dead_letters_are_shown_and_replayed_once(
    bootstrap: str, json_of: Callable[..., Any], ottla: Run, filled: str
) -> None:
    letters = f"{filled}.dlq"
    with Client(bootstrap) as client:
        client.run(client.admin.create_topic(letters, partitions=2))
        origins = [
            Message(filled, 1, n, 5000 + n, False, b"k", b"dead%d" % n, ()) for n in range(3)
        ]
        client.write(
            letters,
            [
                Outgoing(
                    origin.value,
                    origin.key,
                    tuple(headers_for(origin, ValueError("bad"), group="g", handler="h")),
                    timestamp_ms=origin.timestamp_ms,
                )
                for origin in origins
            ],
        )
    shown = ottla("dlq", "peek", letters).stdout.decode()
    assert f"{filled}-1 at offset 0, by g" in shown
    assert "builtins.ValueError: bad" in shown
    assert json_of("dlq", "replay", letters)["replayed"] == {filled: 3}
    assert json_of("dlq", "replay", letters, "-n", "1", "--execute")["replayed"] == {filled: 1}
    assert json_of("dlq", "replay", letters, "--execute")["replayed"] == {filled: 2}
    assert json_of("dlq", "replay", letters, "--execute")["replayed"] == {}
    done = ottla("consume", filled, "-p", "1", "--offset", "10", "--to-end", "--json")
    back = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(record["value"] for record in back) == ["dead0", "dead1", "dead2"]
    assert {record["key"] for record in back} == {"k"}
    assert [record["headers"] for record in back] == [[], [], []]
    assert sorted(record["timestamp"] for record in back) == [5000, 5001, 5002]
