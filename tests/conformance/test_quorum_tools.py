"""Apache Kafka's own tool describes a quorum of three Ottla nodes, and changes its voters."""

import re
import time
from pathlib import Path

import pytest

from ottla.client.blocking import Client
from ottla.model.types import uuid_text
from tests.conformance.apache_kafka import run_class
from tests.process.quorum_nodes import Nodes, running

TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"


def done(*how: str) -> str:
    ended = run_class(TOOL, *how)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert isinstance(ended.stdout, str)
    return ended.stdout


def rows(replicas: str) -> dict[int, list[str]]:
    return {int(row.split()[0]): row.split()[1:] for row in replicas.splitlines()[1:] if row}


def test_kafkas_tool_describes_the_quorum_at_brokers_and_controllers(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        describe(nodes)


def describe(nodes: Nodes) -> None:
    leader = nodes.leader()
    follower = next(number for number in nodes.all if number != leader)
    status = done("--bootstrap-server", nodes.all[follower].bootstrap, "describe", "--status")
    assert re.search(rf"LeaderId:\s+{leader}\n", status)
    assert re.search(r"MaxFollowerLag:\s+0\n", status)
    where = f"127.0.0.1:{nodes.all[follower].controller_port}"
    replicas = done("--bootstrap-controller", where, "describe", "--replication")
    found = rows(replicas)
    assert {number: row[-1] for number, row in found.items()} == {
        number: "Leader" if number == leader else "Follower" for number in nodes.all
    }
    assert {row[0] for row in found.values()} == {uuid_text(bytes(16))}  # Static: without disks.


def described_with(node: int, *at: str) -> dict[int, list[str]]:
    """A replica is listed once it has fetched from the one that leads now."""
    deadline = time.monotonic() + 30
    while node not in (found := rows(done(*at, "describe", "--replication"))):
        assert time.monotonic() < deadline, f"node {node} never came back"
    return found


@pytest.mark.slow
def test_kafkas_tool_adds_a_voter_and_removes_the_one_that_leads(tmp_path: Path) -> None:
    with running(tmp_path, joining=1) as nodes:
        at = ("--bootstrap-server", nodes.all[2].bootstrap)
        before = rows(done(*at, "describe", "--replication"))
        assert before[4][-1] == "Observer"
        config = str(nodes.all[4].directory / "server.properties")
        done(*at, "--command-config", config, "add-controller")
        leader = nodes.leader(2)
        which = ("--controller-id", str(leader), "--controller-directory-id", before[leader][0])
        done(*at, "remove-controller", *which)
        nodes.leader(2)
        after = described_with(leader, *at)
        assert after[leader][-1] == "Observer"
        assert {number for number, row in after.items() if row[-1] != "Observer"} == {
            number for number in (1, 2, 3, 4) if number != leader
        }
        for node in nodes.all.values():  # Each has read it from its own disk after a restart.
            node.kill()
        nodes.start()
        again = described_with(leader, *at)
        assert {n: row[0] for n, row in again.items()} == {n: row[0] for n, row in after.items()}
        assert again[leader][-1] == "Observer"


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        # What came since may be less than the next one waits for.
        ({"metadata.log.max.record.bytes.between.snapshots": "2000"}, 4),
        ({"metadata.log.max.snapshot.interval.ms": "1000"}, 10),
    ],
    ids=["bytes", "time"],
)
def test_every_node_writes_snapshots_that_kafkas_tool_reads(
    tmp_path: Path, setting: dict[str, str], count: int
) -> None:
    nodes = Nodes(tmp_path)
    for node in nodes.all.values():
        node.settings |= setting
    names = [f"topic-{number}" for number in range(10)]
    try:
        nodes.start()
        with Client(nodes.bootstrap) as client:
            for name in names:
                client.run(client.admin.create_topic(name, partitions=3, replication_factor=3))
        for node in nodes.all.values():
            wait_for_snapshot(node.data_directory, names[:count])
        for node in nodes.all.values():
            node.kill()
        nodes.start()
        for number in nodes.all:
            nodes.wait_topics(number, *names)
    finally:
        for node in nodes.all.values():
            node.kill()
    directory = nodes.all[1].data_directory / "__cluster_metadata-0"
    read = run_class(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--cluster-metadata-decoder", "--files", str(newest_snapshot(directory))),
    )
    log = run_class(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--cluster-metadata-decoder", "--files", str(sorted(directory.glob("*.log"))[0])),
    )
    assert read.returncode == log.returncode == 0, read.stdout + read.stderr + log.stderr
    assert all(f'"name":"{name}"' in log.stdout for name in names)
    assert not re.search("error|invalid|corrupt", log.stdout, re.IGNORECASE)
    assert all(f'"name":"{name}"' in read.stdout for name in names[:count])
    assert read.stdout.count('"type":"PARTITION_RECORD"') >= 3 * count
    assert "SnapshotHeader" in read.stdout
    assert "SnapshotFooter" in read.stdout


def newest_snapshot(directory: Path) -> Path:
    return sorted(directory.glob("*.checkpoint"))[-1]


def wait_for_snapshot(data_directory: Path, names: list[str]) -> None:
    """One that has all of these."""
    directory = data_directory / "__cluster_metadata-0"
    deadline = time.monotonic() + 30
    while True:
        if list(directory.glob("*.checkpoint")):
            written = newest_snapshot(directory).read_bytes()
            if all(name.encode() in written for name in names):
                return
        assert time.monotonic() < deadline, "no snapshot was written"
        time.sleep(0.1)
