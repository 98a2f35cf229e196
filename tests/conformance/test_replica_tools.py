"""Apache Kafka's own tools move partitions, elect leaders and raise features of three nodes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Cluster
from tests.conformance.apache_kafka import run_class

TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as made:
        yield made


def done(cluster: Cluster, tool: str, *how: str) -> str:
    where = ("--bootstrap-server", cluster.bootstrap_servers)
    ended = run_class(f"{TOOLS}.{tool}", *_with(tool, where, how), seconds_max=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert isinstance(ended.stdout, str)
    return ended.stdout


def _with(tool: str, where: tuple[str, ...], how: tuple[str, ...]) -> tuple[str, ...]:
    """One of the tools wants to hear first what it is to do."""
    return (how[0], *where, *how[1:]) if tool == "ClusterTool" else (*where, *how)


def described(cluster: Cluster, topic: str) -> dict[int, dict[str, str]]:
    """What kafka-topics says of each partition."""
    page = done(cluster, "TopicCommand", "--describe", "--topic", topic)
    rows = re.findall(r"Partition: (\d+)\tLeader: (\d+)\tReplicas: (\S+)\tIsr: (\S+)", page)
    return {int(n): {"leader": at, "replicas": to, "isr": isr} for n, at, to, isr in rows}


@pytest.mark.timeout(300)
def test_partitions_move_grow_and_are_led_by_whom_they_prefer(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create_topic("moved", partitions=2, replication_factor=2)
    cluster.produce("moved", *[b"%d" % n for n in range(50)])
    before = described(cluster, "moved")
    wanted = {0: "3,1", 1: "1,2,3"}
    plan = [
        {"topic": "moved", "partition": n, "replicas": list(map(int, to.split(",")))}
        for n, to in wanted.items()
    ]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": plan}))
    how = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(path))
    begun = done(cluster, *how, "--execute")
    assert "Successfully started partition reassignments for moved-0,moved-1" in begun
    assert json.dumps(list(map(int, before[0]["replicas"].split(","))))[1:-1].replace(" ", "") in (
        begun
    )
    cluster.until(lambda: sorted(cluster.isr("moved", 1)) == [1, 2, 3])
    verified = done(cluster, *how, "--verify")
    for n in wanted:
        assert f"Reassignment of partition moved-{n} is completed." in verified
    elected = ("--election-type", "preferred", "--all-topic-partitions")
    done(cluster, "LeaderElectionCommand", *elected)
    after = described(cluster, "moved")
    assert {n: row["replicas"] for n, row in after.items()} == wanted
    assert {n: row["leader"] for n, row in after.items()} == {0: "3", 1: "1"}
    assert len(cluster.records("moved")) == 50


@pytest.mark.timeout(300)
def test_a_feature_is_raised_for_all_nodes(cluster: Cluster) -> None:
    name = "eligible.leader.replicas.version"
    said = done(cluster, "FeatureCommand", "upgrade", "--feature", f"{name}=1")
    assert f"{name} was upgraded to 1." in said
    page = done(cluster, "FeatureCommand", "describe")
    assert re.search(rf"{re.escape(name)}\s.*FinalizedVersionLevel: 1\s", page)


@pytest.mark.timeout(300)
def test_a_throttled_move_ends_and_its_throttle_is_taken_away(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create_topic("throttled", replication_factor=2)
    cluster.produce("throttled", *[bytes(10_000)] * 300)
    here = cluster.isr("throttled")
    (newcomer,) = set(cluster.node_ids) - set(here)
    plan = [{"topic": "throttled", "partition": 0, "replicas": [*here, newcomer]}]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": plan}))
    how = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(path))
    begun = done(cluster, *how, "--execute", "--throttle", "50000")
    assert "The inter-broker throttle limit was set to 50000 B/s" in begun
    page = done(cluster, "TopicCommand", "--describe", "--topic", "throttled")
    assert f"follower.replication.throttled.replicas=0:{newcomer}" in page
    listed = done(cluster, "reassign.ReassignPartitionsCommand", "--list")
    assert f"throttled-0: replicas: {','.join(map(str, [*here, newcomer]))}" in listed
    assert newcomer not in cluster.isr("throttled")
    done(cluster, *how, "--execute", "--additional", "--throttle", "5000000")
    cluster.until(lambda: newcomer in cluster.isr("throttled"), 60)
    verified = done(cluster, *how, "--verify")
    assert "Reassignment of partition throttled-0 is completed." in verified
    assert "Clearing broker-level throttles" in verified
    assert "throttled.replicas" not in done(
        cluster, "TopicCommand", "--describe", "--topic", "throttled"
    )


@pytest.mark.timeout(300)
def test_records_are_deleted_from_all_replicas(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("shortened", replication_factor=3)
    cluster.produce("shortened", *[b"%d" % n for n in range(20)])
    path = tmp_path / "offsets.json"
    wanted = [{"topic": "shortened", "partition": 0, "offset": 15}]
    path.write_text(json.dumps({"version": 1, "partitions": wanted}))
    said = done(cluster, "DeleteRecordsCommand", "--offset-json-file", str(path))
    assert re.search(r"partition: shortened-0\s+low_watermark: 15", said)
    leader = cluster.leader("shortened")
    cluster.kill(leader)
    cluster.until(lambda: cluster.leader("shortened") not in (leader, -1), 60)
    assert [int(m.value or b"") for m in cluster.records("shortened")] == list(range(15, 20))
    cluster.start_node(leader)
    cluster.until(lambda: len(cluster.isr("shortened")) == 3, 60)


@pytest.mark.timeout(300)
def test_partitions_that_lack_replicas_are_listed_and_a_dead_broker_is_forgotten(
    cluster: Cluster,
) -> None:
    cluster.create_topic("lacking", partitions=3, replication_factor=3)
    victim = next(node for node in cluster.node_ids if node != cluster.controller())
    cluster.kill(victim)
    cluster.until(lambda: all(victim not in cluster.isr("lacking", n) for n in range(3)), 60)
    page = done(cluster, "TopicCommand", "--describe", "--under-replicated-partitions")
    assert len(re.findall(r"Topic: lacking\tPartition: \d", page)) == 3
    assert "deregistered" not in done(cluster, "ClusterTool", "cluster-id")
    said = done(cluster, "ClusterTool", "unregister", "--id", str(victim))
    assert f"Broker {victim} is no longer registered." in said
    endpoints = done(cluster, "ClusterTool", "list-endpoints", "--include-fenced-brokers")
    assert not re.search(rf"^{victim}\s", endpoints, re.MULTILINE)
    cluster.start_node(victim)  # It registers again, and is what it was.
    cluster.until(lambda: all(victim in cluster.isr("lacking", n) for n in range(3)), 60)
