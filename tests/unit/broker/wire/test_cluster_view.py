from typing import Any

from ottla.broker.wire import cluster_view
from ottla.metadata.image.cluster import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    Broker,
    Endpoint,
    Partition,
)
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId

DISK, GONE = b"d" * 16, b"g" * 16


def image(**brokers: dict[str, Any]) -> ClusterImage:
    made = ClusterImage("c")
    for name, change in brokers.items():
        node = NodeId(int(name[1:]))
        fields: dict[str, Any] = {
            "endpoints": {"PLAINTEXT": Endpoint("h", 9000 + node)},
            "is_fenced": False,
            "directories": (DISK,),
        }
        made.brokers[node] = Broker(node, 0, bytes(16), features={}, **(fields | change))
    return made


def partition(*directories: bytes) -> Partition:
    replicas = tuple(NodeId(n) for n in range(1, len(directories) + 1))
    return Partition(NodeId(1), 0, 0, replicas, replicas, directories=directories)


def test_brokers_are_alive_where_they_listen_and_are_not_fenced() -> None:
    seen = image(b1={}, b2={"is_fenced": True}, b3={"endpoints": {}})
    alive = [(node.id, where.port) for node, where in cluster_view.alive_brokers(seen, "PLAINTEXT")]
    assert alive == [(1, 9001)]
    assert list(cluster_view.alive_brokers(seen, "OTHER")) == []
    assert cluster_view.is_alive(seen, NodeId(1), "PLAINTEXT")
    for node in (2, 3, 9, -1):
        assert not cluster_view.is_alive(seen, NodeId(node), "PLAINTEXT")


def test_a_replica_is_offline_with_its_broker_or_its_disk() -> None:
    seen = image(b1={}, b2={"is_fenced": True}, b3={}, b4={}, b5={})
    offline = cluster_view.offline_replicas(
        seen, partition(DISK, DISK, GONE, UNASSIGNED_DIRECTORY, LOST_DIRECTORY), "PLAINTEXT"
    )
    assert offline == [2, 3, 5]


def test_operations_are_kafkas_bits() -> None:
    assert cluster_view.TOPIC_OPERATIONS == 3576
    assert cluster_view.CLUSTER_OPERATIONS == 8096
