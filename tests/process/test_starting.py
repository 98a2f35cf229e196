"""Starting and stopping a broker from the command line, and every way in which it cannot start."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.conformance.broker_process import free_ports

OTTLA = [sys.executable, "-m", "ottla.cli.main"]


def up(directory: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A broker that has said where it is; its ports are free ones unless told otherwise."""
    command = [*OTTLA, "up", "--data", str(directory), "--port", "0", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdout is not None
    process.banner = process.stdout.readline()  # type: ignore[attr-defined]
    return process


def stop(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> tuple[int, str]:
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    return process.returncode, errors


def refusal(*arguments: str) -> str:
    answer = subprocess.run(
        [*OTTLA, *arguments], capture_output=True, text=True, timeout=20, check=False
    )
    assert answer.returncode == 1, answer.stderr
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("ottla: ")
    assert "Traceback" not in answer.stderr
    return last


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_broker_stops_cleanly_when_told(tmp_path: Path, number: int) -> None:
    process = up(tmp_path / "data")
    assert "serves Kafka clients on 127.0.0.1:" in process.banner  # type: ignore[attr-defined]
    status, errors = stop(process, number)
    assert status == 0, errors
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_with_json_logs_every_line_of_both_streams_is_json(tmp_path: Path) -> None:
    asked = ("--set", "ottla.log.format=json", "--set", "ottla.log.level=warning")
    process = up(tmp_path / "data", *asked)
    event = json.loads(process.banner)  # type: ignore[attr-defined]
    assert "serves Kafka clients on 127.0.0.1:" in event["message"]
    second = subprocess.run(
        [*OTTLA, "up", "--data", str(tmp_path / "data"), "--port", "0", *asked],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert second.returncode == 1
    assert "in use by another broker" in json.loads(second.stderr)["message"]
    process.send_signal(signal.SIGTERM)
    rest, errors = process.communicate(timeout=20)
    assert [json.loads(line) for line in errors.splitlines()] == []
    assert rest == ""


def test_a_broker_starts_again_as_the_same(tmp_path: Path) -> None:
    for _ in range(2):
        status, errors = stop(up(tmp_path / "data"))
        assert status == 0, errors
    assert errors.count("Formatting") == 0


def test_kafkas_server_properties_start_a_broker(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    client, controller = free_ports(2)
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.bootstrap.servers=localhost:{controller}\n"
        f"listeners=PLAINTEXT://:{client},CONTROLLER://:{controller}\n"
        "inter.broker.listener.name=PLAINTEXT\n"
        f"advertised.listeners=PLAINTEXT://localhost:{client},CONTROLLER://localhost:{controller}\n"
        "controller.listener.names=CONTROLLER\nnum.network.threads=3\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n"
        f"log.dirs={tmp_path / 'logs'}\noffsets.topic.replication.factor=1\n"
    )
    process = subprocess.Popen(
        [*OTTLA, "start", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert f"localhost:{client}" in process.stdout.readline()
    status, errors = stop(process)
    assert status == 0, errors
    assert "without effect here: num.network.threads" in errors


def test_metrics_and_health_are_on_a_port_of_their_own(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    process = up(tmp_path / "data", "--set", f"ottla.metrics.listener=127.0.0.1:{port}")
    try:
        pages = {}
        for page in ("health", "metrics"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
                pages[page] = answer.read().decode()
    finally:
        stop(process)
    assert pages["health"] == "ok\n"
    assert "ottla_connections 0" in pages["metrics"]


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = refusal("up", "--data", str(tmp_path / "data"), "--port", port)
    assert f"127.0.0.1:{port} is in use" in sentence


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    process = up(tmp_path / "data")
    try:
        sentence = refusal("up", "--data", str(tmp_path / "data"), "--port", "0")
    finally:
        stop(process)
    assert "in use by another broker" in sentence


def test_a_foreign_directory_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    assert "no log directory" in refusal("up", "--data", str(tmp_path), "--port", "0")
    assert (tmp_path / "thesis.txt").read_text() == "chapter one"


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in refusal("up", "--data", str(tmp_path / "file" / "data"), "--port", "0")


def test_another_nodes_directory_is_refused(tmp_path: Path) -> None:
    stop(up(tmp_path / "data"))
    where = ("--data", str(tmp_path / "data"), "--port", "0")
    assert "belongs to node 1" in refusal("up", *where, "--set", "node.id=2")


def test_search_for_the_active_controller_names_each_address_and_its_answer(
    tmp_path: Path,
) -> None:
    other = up(tmp_path / "other")
    clients, controller, dead = free_ports(3)
    try:
        banner = other.banner  # type: ignore[attr-defined]
        broker_port = int(banner.rstrip().rpartition(":")[2])
        listening = tmp_path / "server.properties"
        listening.write_text(
            "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controller}\n"
            f"controller.quorum.voters=7@127.0.0.1:{controller},8@127.0.0.1:{dead},"
            f"9@127.0.0.1:{broker_port}\nlog.dirs={tmp_path / 'data'}\n"
        )
        format_ = [*OTTLA, "format", "-t", "aZSxcrjtRrO_dWhnyP37Bw", "-c", str(listening)]
        subprocess.run(format_, check=True, capture_output=True, timeout=20)
        searching = subprocess.Popen(
            [*OTTLA, "start", str(listening)], stderr=subprocess.PIPE, text=True
        )
        assert searching.stderr is not None
        report = next(line for line in searching.stderr if "no active controller found" in line)
        searching.kill()
        searching.communicate(timeout=20)
        assert f"cannot connect to 127.0.0.1:{dead}: nothing listens there" in report
        assert f"the broker at 127.0.0.1:{broker_port} does not serve VOTE" in report
    finally:
        stop(other)
