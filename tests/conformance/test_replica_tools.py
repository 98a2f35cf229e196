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
    ended = run_class(
        f"{TOOLS}.{tool}", "--bootstrap-server", cluster.bootstrap_servers, *how, seconds_max=120
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert isinstance(ended.stdout, str)
    return ended.stdout


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
