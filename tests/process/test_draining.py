"""A broker of a real cluster is drained by `ottla brokers`, stopped and forgotten."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ottla.cli.app import app
from ottla.testing import Cluster

TOPIC = "orders"


def ottla(cluster: Cluster, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "-b", cluster.bootstrap_servers])


def json_of(cluster: Cluster, *arguments: str) -> Any:  # noqa: ANN401
    answer = ottla(cluster, *arguments, "--json")
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def brokers_by_id(cluster: Cluster) -> dict[int, dict[str, Any]]:
    return {item["id"]: item for item in json_of(cluster, "brokers", "list")}


@pytest.mark.timeout(120)
def test_a_broker_is_emptied_stopped_and_forgotten() -> None:
    settings = {"ottla.rebalance.interval.ms": 200, "offsets.topic.num.partitions": 1}
    with Cluster(brokers=3, settings=settings) as cluster:
        cluster.create_topic(TOPIC, 6, replication_factor=2)
        cluster.produce(TOPIC, *(b"%d" % number for number in range(500)))
        victim = next(node for node in cluster.node_ids if node != cluster.controller())
        seen = brokers_by_id(cluster)
        assert [item["state"] for item in seen.values()] == ["running"] * 3
        assert sum(item["controller"] for item in seen.values()) == 1
        assert (sum(b["leaders"] for b in seen.values()), seen[victim]["replicas"] > 0) == (6, True)

        refused = ottla(cluster, "brokers", "unregister", str(victim))
        assert (refused.exit_code, "is running" in refused.stderr) == (1, True)

        drained = ottla(cluster, "brokers", "drain", str(victim), "--wait")
        assert drained.exit_code == 0, drained.stderr
        assert "replicas moved" in drained.stderr
        seen = brokers_by_id(cluster)
        assert (seen[victim]["state"], seen[victim]["replicas"]) == ("drained", 0)
        whole = json_of(cluster, "cluster")
        assert (whole["partitions_under_replicated"], whole["reassignments"]) == (0, [])

        cluster.stop(victim)
        assert ottla(cluster, "brokers", "unregister", str(victim)).exit_code == 0
        assert victim not in brokers_by_id(cluster)
        assert len(cluster.records(TOPIC)) == 500


@pytest.mark.timeout(120)
def test_a_broker_that_is_down_is_emptied_and_may_come_back() -> None:
    with Cluster(brokers=3, settings={"ottla.rebalance.interval.ms": 200}) as cluster:
        cluster.create_topic(TOPIC, 6, replication_factor=2)
        cluster.produce(TOPIC, *(b"%d" % number for number in range(500)))
        victim = next(node for node in cluster.node_ids if node != cluster.controller())
        cluster.kill(victim)
        drained = ottla(cluster, "brokers", "drain", str(victim), "--wait")
        assert drained.exit_code == 0, drained.stderr
        seen = brokers_by_id(cluster)
        assert (seen[victim]["state"], seen[victim]["replicas"]) == ("fenced", 0)
        assert len(cluster.records(TOPIC)) == 500

        cluster.start_node(victim)
        cluster.until(lambda: brokers_by_id(cluster)[victim]["state"] == "drained")
        assert ottla(cluster, "brokers", "undrain", str(victim)).exit_code == 0
        cluster.until(lambda: brokers_by_id(cluster)[victim]["replicas"] > 0)
        assert len(cluster.records(TOPIC)) == 500
