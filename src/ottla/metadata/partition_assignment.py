"""Replicas for new partitions: placed by us or given by the client, and who is in sync at first."""

from collections.abc import Sequence
from typing import Any

from ottla.metadata.cluster import UNASSIGNED_DIRECTORY, Partition
from ottla.metadata.decisions import Surroundings, is_active, is_drained
from ottla.metadata.image import ClusterImage
from ottla.metadata.placement import place
from ottla.metadata.snapshot import partition_record
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId, Uuid

RECORDS_MAX = 10_000  # Of one request: beyond it the decision would not fit one batch.


def placed(around: Surroundings, count: int, replication_factor: int) -> list[Partition]:
    """New partitions on brokers that the placement picks."""
    check_count(count)
    image = around.image
    brokers = [broker for broker in image.brokers.values() if not is_drained(image, broker.id)]
    if len(brokers) < replication_factor:
        brokers = list(image.brokers.values())  # Better on one that is to be emptied than nowhere.
    replicas = place(brokers, count, replication_factor, around.below)
    partitions = []
    for nodes in replicas:
        isr = tuple(node for node in nodes if is_active(image, node))
        if not isr:
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {replication_factor} time(s): "
                "All brokers are currently fenced or in controlled shutdown.",
            )
        partitions.append(_new(image, nodes, isr))
    return partitions


def assigned(image: ClusterImage, index: int, broker_ids: Sequence[int]) -> Partition:
    """A new partition on the brokers that the client names."""
    nodes = tuple(map(NodeId, broker_ids))
    isr = tuple(node for node in nodes if is_active(image, node))
    if not isr:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for "
            f"partition {index} are fenced or in controlled shutdown.",
        )
    return _new(image, nodes, isr)


def check_assignment(
    image: ClusterImage, broker_ids: Sequence[int], replication_factor: int | None
) -> None:
    if not broker_ids:
        raise _refusal("The manual partition assignment includes an empty replica list.")
    before = None
    for node in sorted(broker_ids):
        if node not in image.brokers:
            raise _refusal(
                f"The manual partition assignment includes broker {node}, "
                "but no such broker is registered."
            )
        if node == before:
            raise _refusal(
                f"The manual partition assignment includes the broker {node} more than once."
            )
        before = node
    if replication_factor is not None and len(broker_ids) != replication_factor:
        raise _refusal(
            f"The manual partition assignment includes a partition with {len(broker_ids)} "
            "replica(s), but this is not consistent with previous partitions, "
            f"which have {replication_factor} replica(s)."
        )


def check_count(partitions: int) -> None:
    if partitions > RECORDS_MAX:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def partition_records(
    image: ClusterImage, topic_id: Uuid, partitions: Sequence[Partition], first_index: int = 0
) -> list[Any]:
    version = image.metadata_version
    return [
        partition_record(topic_id, index, partition, version)
        for index, partition in enumerate(partitions, first_index)
    ]


def _new(image: ClusterImage, nodes: tuple[NodeId, ...], isr: tuple[NodeId, ...]) -> Partition:
    brokers = [image.brokers.get(node) for node in nodes]
    return Partition(
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        replicas=nodes,
        isr=isr,
        directories=tuple(
            broker.default_directory if broker else UNASSIGNED_DIRECTORY for broker in brokers
        ),
    )


def _refusal(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
