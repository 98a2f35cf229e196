"""Replicas of new partitions, chosen by placement or given by the client, and their first ISR."""

from collections.abc import Sequence
from typing import Any

from ottla.metadata.decisions.context import DecisionContext, is_active, is_drained
from ottla.metadata.decisions.placement import Placement
from ottla.metadata.image.cluster import UNASSIGNED_DIRECTORY, Partition
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot import partition_record
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId, Uuid

RECORDS_MAX = 10_000  # Per request; more would not fit one batch.


class NewPartitions:
    """New partitions of one request, on brokers chosen by placement.

    Thousands of partitions share few replica sets, so the state of each set is computed once.
    Partitions with equal replicas are the same object.
    """

    def __init__(self, context: DecisionContext) -> None:
        self._context = context
        self._placements: dict[bool, Placement] = {}
        self._known: dict[tuple[NodeId, ...], Partition] = {}
        image = context.image
        self._lasting = [b for b in image.brokers.values() if not is_drained(image, b.id)]

    def place(self, count: int, replication_factor: int) -> list[Partition]:
        check_count(count)
        replicas = self._placement(replication_factor).place(count, replication_factor)
        known = self._known
        return [known.get(nodes) or self._new(nodes) for nodes in replicas]

    def _placement(self, replication_factor: int) -> Placement:
        # A drained broker is better than too few replicas.
        is_for_all = len(self._lasting) < replication_factor
        placement = self._placements.get(is_for_all)
        if placement is None:
            brokers = self._context.image.brokers.values() if is_for_all else self._lasting
            placement = self._placements[is_for_all] = Placement(brokers, self._context.below)
        return placement

    def _new(self, nodes: tuple[NodeId, ...]) -> Partition:
        image = self._context.image
        isr = tuple(node for node in nodes if is_active(image, node))
        if not isr:
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {len(nodes)} time(s): "
                "All brokers are currently fenced or in controlled shutdown.",
            )
        partition = self._known[nodes] = _new(image, nodes, isr)
        return partition


def assigned(image: ClusterImage, index: int, broker_ids: Sequence[int]) -> Partition:
    """A new partition on the brokers named by the client."""
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
