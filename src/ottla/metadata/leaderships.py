"""What becomes of partitions when a broker goes, comes back, or comes back without its data."""

from collections.abc import Callable
from functools import partial

from ottla.metadata.cluster import NO_LEADER, Partition
from ottla.metadata.decisions import Surroundings, is_active
from ottla.metadata.elections import Circumstances, change_of
from ottla.metadata.features import is_elr_enabled
from ottla.metadata.image import ClusterImage
from ottla.metadata.topic_configs import effective_config
from ottla.model.types import NodeId, Uuid
from ottla.protocol.metadata_records import PartitionChangeRecord


def leave(
    around: Surroundings, node: NodeId, directories: frozenset[Uuid] | None = None
) -> list[PartitionChangeRecord]:
    """`node` leaves every ISR and leads nothing; of some directories only, if these are named."""

    def is_concerned(partition: Partition) -> bool:
        if node not in partition.isr:
            return False
        return directories is None or partition.directory_of(node) in directories

    return _changes(around, is_concerned, without=node, may_lead=_others(around, node))


def come_back(around: Surroundings, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` may lead again what nobody leads."""

    def may_lead(candidate: NodeId) -> bool:
        return candidate == node or is_active(around.image, candidate)

    return _changes(around, lambda partition: partition.leader == NO_LEADER, may_lead=may_lead)


def lose(around: Surroundings, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` stopped uncleanly: it is no longer trusted to hold what it acknowledged."""
    return _changes(
        around,
        lambda partition: node in partition.isr or node in partition.elr,
        without=node,
        may_lead=_others(around, node),
        is_lost=True,
    )


def forget(around: Surroundings, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` leaves the cluster: every ISR and every ELR."""
    return _changes(
        around,
        lambda partition: node in partition.isr or node in partition.elr,
        without=node,
        may_lead=_others(around, node),
    )


def leads_any(around: Surroundings, node: NodeId) -> bool:
    return any(
        partition.leader == node
        for topic in around.image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


def _others(around: Surroundings, node: NodeId) -> Callable[[NodeId], bool]:
    return lambda candidate: candidate != node and is_active(around.image, candidate)


def _changes(
    around: Surroundings,
    is_concerned: Callable[[Partition], bool],
    *,
    may_lead: Callable[[NodeId], bool],
    without: NodeId = NO_LEADER,
    is_lost: bool = False,
) -> list[PartitionChangeRecord]:
    lost = without if is_lost else NO_LEADER
    is_elr = is_elr_enabled(around.image.features)
    changes = []
    for topic in around.image.topics_by_id.values():
        concerned = [(i, p) for i, p in topic.partitions.items() if is_concerned(p)]
        if not concerned:
            continue
        # What a topic's configs say is looked up once, not for each of its partitions.
        isr_min = int(effective_config(around, topic.name, "min.insync.replicas") or 1)
        unclean = effective_config(around, topic.name, "unclean.leader.election.enable") == "true"
        for index, partition in concerned:
            circumstances = Circumstances(
                partial(_may_lead_from_its_disk, around.image, partition, may_lead),
                min(isr_min, len(partition.replicas)),
                is_elr,
                unclean,
                lost,
            )
            isr = tuple(node for node in partition.isr if node != without)
            change = change_of(topic.id, index, partition, isr, circumstances)
            if change is not None:
                changes.append(change)
    return changes


def _may_lead_from_its_disk(
    image: ClusterImage, partition: Partition, may_lead: Callable[[NodeId], bool], node: NodeId
) -> bool:
    """A broker that lost the disk of a replica does not lead it, or an empty log would."""
    broker = image.brokers.get(node)
    return broker is not None and may_lead(node) and broker.has_disk_of(partition)
