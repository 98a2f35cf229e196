"""Nodes are real processes here; one is enough to test start, output and stop."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import pytest

from ottla.broker.node.local_cluster import LocalCluster
from ottla.broker.settings.error import SettingsError
from ottla.cli.tasks.nodes import Nodes, banner
from ottla.env.clock import RealClock
from ottla.env.disk import real_disk
from ottla.testing.ports import Ports


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    port, controller_port = (ports := Ports(2)).numbers
    pairs = [(port, controller_port)]
    made = LocalCluster.on_ports(str(tmp_path), pairs, host="127.0.0.1", rack="here")
    made.prepare(real_disk(), {}, RealClock().wall(), SystemRandom().randbytes)
    yield made
    ports.close()


def test_nodes_are_announced_when_they_serve_and_stop_on_request(
    cluster: LocalCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    nodes = Nodes(cluster)
    running = threading.Thread(target=nodes.run)
    running.start()
    # A stop before the announcement replaces it.
    announced = errors = ""
    for _ in range(300):
        if "Ctrl-C" in announced:
            break
        time.sleep(0.1)
        said = capfd.readouterr()
        announced, errors = announced + said.out, errors + said.err
    assert "1 brokers serve" in announced
    with socket.create_connection(("127.0.0.1", cluster.nodes[0].port)):
        pass
    nodes.stop_soon()
    running.join(30)
    assert not running.is_alive()
    errors += capfd.readouterr().err
    assert "[1] " in errors
    assert "ended with status" not in errors


def test_a_dead_node_is_reported_and_the_last_one_ends_the_command(
    cluster: LocalCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    nodes = Nodes(cluster)
    failures: list[SettingsError] = []

    def run() -> None:
        try:
            nodes.run()
        except SettingsError as error:
            failures.append(error)

    running = threading.Thread(target=run)
    running.start()
    with nodes._changed:
        assert nodes._changed.wait_for(lambda: nodes._ready, timeout=30)
        (child,) = nodes._running.values()
    os.kill(child.pid, signal.SIGKILL)
    running.join(30)
    assert "every node has ended" in str(failures[0])
    assert f"ottla start {cluster.nodes[0].properties_file}" in capfd.readouterr().err


def test_with_json_logs_every_line_of_both_streams_is_json(
    cluster: LocalCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.prepare(
        real_disk(), {"ottla.log.format": "json"}, RealClock().wall(), SystemRandom().randbytes
    )
    nodes = Nodes(cluster, is_json=True)
    endings: list[object] = []

    def run() -> None:
        try:
            nodes.run()
        except SystemExit as end:
            endings.append(end.code)

    running = threading.Thread(target=run)
    running.start()
    with nodes._changed:
        assert nodes._changed.wait_for(lambda: nodes._ready, timeout=30)
        (child,) = nodes._running.values()
    os.kill(child.pid, signal.SIGKILL)
    running.join(30)
    shown = capfd.readouterr()
    announced, logged = ([json.loads(line) for line in text.splitlines()] for text in shown)
    assert [event["message"] for event in announced] == [banner(cluster, cluster.nodes)[0]]
    assert {event.get("node") for event in logged[:-1]} == {1}
    assert "ended with status -9" in logged[-2]["message"]
    assert logged[-1]["message"].startswith("every node has ended")
    assert endings == [1]


def test_the_banner_says_where_everything_is() -> None:
    cluster = LocalCluster.at("/data", 3, host="127.0.0.1", port=19092, rack="here")
    text = "\n".join(banner(cluster, cluster.nodes[:2]))
    assert "2 brokers serve" in text
    assert text.count("ended") == 1
    for node in cluster.nodes:
        assert f"{node.host}:{node.port}" in text
        assert node.log_directory in text
    assert "-b 127.0.0.1:19092" in text
