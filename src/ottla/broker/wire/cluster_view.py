"""The cluster as a client of one listener sees it: who is alive, who leads, who is offline."""

from collections.abc import Iterator
from typing import Final

from ottla.metadata.image.cluster import Broker, Endpoint, Partition
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId

# Bits of what a caller may do, by Kafka's numbers of the operations: all, while nobody is refused.
TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
GROUP_OPERATIONS: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))
NOT_ASKED: Final = -(1 << 31)


def alive_brokers(image: ClusterImage, listener: str) -> Iterator[tuple[Broker, Endpoint]]:
    """The brokers that take requests on this listener, and where."""
    for broker in image.brokers.values():
        endpoint = broker.endpoints.get(listener)
        if endpoint is not None and not broker.is_fenced:
            yield broker, endpoint


def is_alive(image: ClusterImage, node: NodeId, listener: str) -> bool:
    broker = image.brokers.get(node)
    return broker is not None and not broker.is_fenced and listener in broker.endpoints


def offline_replicas(image: ClusterImage, partition: Partition, listener: str) -> list[int]:
    return [
        node
        for node in partition.replicas
        if not is_alive(image, node, listener) or not image.brokers[node].has_disk_of(partition)
    ]
