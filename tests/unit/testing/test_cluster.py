"""A cluster of three real processes: it serves, loses nodes in many ways, and recovers."""

from collections.abc import Iterator
from threading import Timer

import pytest

from ottla.testing import Cluster
from ottla.testing.client import Client


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, replica_lag_time_max_ms=2000) as made:
        yield made


def is_whole(cluster: Cluster, topic: str) -> bool:
    return sorted(cluster.isr(topic)) == cluster.node_ids


def test_records_are_replicated_to_every_node(cluster: Cluster) -> None:
    cluster.create_topic("t", configs={"min.insync.replicas": 2})
    cluster.produce("t", b"a", b"b")
    assert is_whole(cluster, "t")
    assert [message.value for message in cluster.records("t")] == [b"a", b"b"]


def test_a_created_topic_is_known_to_every_node(cluster: Cluster) -> None:
    """The nodes learn of it one after the other, this one late."""
    late = next(node for node in cluster.node_ids[1:] if node != cluster.controller())
    cluster._nodes[late].cut()
    healing = Timer(1.0, cluster.heal, [late])
    healing.start()
    cluster.create_topic("known")
    assert healing.finished.is_set()
    address = cluster.bootstrap_servers.split(",")[cluster.node_ids.index(late)]
    assert "known" in Client(address).topics()


def test_a_killed_leader_is_replaced_and_rejoins(cluster: Cluster) -> None:
    cluster.create_topic("killed")
    cluster.produce("killed", b"before")
    leader = cluster.leader("killed")
    cluster.kill(leader)
    cluster.until(lambda: cluster.leader("killed") not in (leader, -1))
    cluster.produce("killed", b"after")
    cluster.start_node(leader)
    cluster.until(lambda: is_whole(cluster, "killed"))
    assert [message.value for message in cluster.records("killed")] == [b"before", b"after"]


def test_an_isolated_node_leaves_the_isr_until_it_is_healed(cluster: Cluster) -> None:
    cluster.create_topic("cut")
    follower = next(node for node in cluster.node_ids if node != cluster.leader("cut"))
    cluster.isolate(follower)
    try:
        cluster.until(lambda: follower not in cluster.isr("cut"), 60)
        cluster.produce("cut", b"without it")
    finally:
        cluster.heal(follower)
    cluster.until(lambda: is_whole(cluster, "cut"))


def test_a_controller_that_is_paused_is_replaced(cluster: Cluster) -> None:
    controller = cluster.controller()
    cluster.pause(controller)
    try:
        cluster.until(lambda: _controller(cluster) not in (controller, -1))
    finally:
        cluster.resume(controller)
    cluster.create_topic("under-a-new-controller")


def _controller(cluster: Cluster) -> int:
    try:
        return cluster.controller()
    except Exception:  # noqa: BLE001  Nobody may know at the moment.
        return -1


def test_a_node_stops_cleanly_and_starts_again(cluster: Cluster) -> None:
    cluster.create_topic("stopped", partitions=3)
    cluster.until(lambda: is_whole(cluster, "stopped"))
    cluster.restart(2)
    cluster.until(lambda: is_whole(cluster, "stopped"))


def test_a_cluster_is_used_in_a_with_statement() -> None:
    with pytest.raises(RuntimeError, match="with statement"):
        Cluster().bootstrap_servers  # noqa: B018
