"""What becomes of partitions when a broker goes, comes back, or comes back without its data."""

from collections.abc import Callable, Collection, Iterable
from functools import partial

from ottla.metadata.cluster import NO_LEADER, UNASSIGNED_DIRECTORY, Partition, Topic
from ottla.metadata.decisions import Surroundings, is_active
from ottla.metadata.elections import Circumstances, Target, change_of
from ottla.metadata.features import (
    has_directories,
    is_elr_enabled,
    is_leader_epoch_raised_by_shrinking,
)
from ottla.metadata.image import ClusterImage
from ottla.metadata.topic_configs import effective_config
from ottla.model.types import NodeId, Uuid
from ottla.protocol.metadata_records import PartitionChangeRecord

MayLead = Callable[[NodeId], bool]


def leave(around: Surroundings, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` leaves every ISR and leads nothing."""
    return _changes(
        around,
        lambda partition: node in partition.isr,
        without=node,
        may_lead=_others(around, node),
    )


def leave_directories(
    around: Surroundings, node: NodeId, directories: Collection[Uuid]
) -> list[PartitionChangeRecord]:
    """`node` leads nothing of what lies in these, and is in no ISR of it.

    While others are in sync it is not eligible to lead either: it will begin with an empty log
    elsewhere. Where nobody else has what it has, it stays the one to wait for.
    """

    def is_lost(partition: Partition) -> bool:
        return partition.directory_of(node) in directories

    others = _others(around, node)
    return [
        *_changes(
            around,
            lambda p: is_lost(p) and p.has_others_in_sync(node) and node in (*p.isr, *p.elr),
            without=node,
            may_lead=others,
            is_lost=True,
        ),
        *_changes(
            around,
            lambda p: is_lost(p) and not p.has_others_in_sync(node) and node in p.isr,
            without=node,
            may_lead=others,
        ),
    ]


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


def leave_partitions(
    around: Surroundings, node: NodeId, concerned: Iterable[tuple[Uuid, int, Partition]]
) -> list[PartitionChangeRecord]:
    """`node` leaves the ISR of these, as they will be by then: their disk is offline.

    While others are in sync it leaves the ELR too, as with `leave_directories`.
    """
    changes = []
    for topic_id, index, partition in concerned:
        is_spare = partition.has_others_in_sync(node)
        if node not in partition.isr and not (is_spare and node in partition.elr):
            continue
        topic = around.image.topics_by_id[topic_id]
        circumstances = Elections(around, topic).of(
            partition,
            may_lead=_others(around, node),
            shut_down_uncleanly=node if is_spare else NO_LEADER,
        )
        isr = tuple(other for other in partition.isr if other != node)
        target = Target.of(partition)._replace(isr=isr)
        change = change_of(topic_id, index, partition, target, circumstances)
        if change is not None:
            changes.append(change)
    return changes


def leads_any(around: Surroundings, node: NodeId) -> bool:
    return any(
        partition.leader == node
        for topic in around.image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


def rests_on(around: Surroundings, node: NodeId, is_heard: Callable[[NodeId], bool]) -> bool:
    """Whether some partition is in sync on `node`, and else on nobody who was heard."""
    if all(is_heard(b.id) for b in around.image.brokers.values() if not b.is_fenced):
        return False
    for topic in around.image.topics_by_name.values():
        for partition in topic.partitions.values():
            others = [other for other in partition.isr if other != node]
            if others and len(others) < len(partition.isr) and not any(map(is_heard, others)):
                return True
    return False


class Elections:
    """What elections in one topic depend on; its configs are looked up once for all of them."""

    def __init__(self, around: Surroundings, topic: Topic) -> None:
        self._around = around
        self._isr_min = int(effective_config(around, topic.name, "min.insync.replicas") or 1)
        self.is_unclean_allowed = (
            effective_config(around, topic.name, "unclean.leader.election.enable") == "true"
        )

    def of(
        self,
        partition: Partition,
        *,
        may_lead: MayLead | None = None,
        is_unclean_allowed: bool | None = None,
        is_preferred_wanted: bool = False,
        shut_down_uncleanly: NodeId = NO_LEADER,
    ) -> Circumstances:
        image = self._around.image
        version = image.metadata_version
        if may_lead is None:
            may_lead = partial(is_active, image)
        if is_unclean_allowed is None:
            is_unclean_allowed = self.is_unclean_allowed
        return Circumstances(
            may_lead=partial(_may_lead_from_its_disk, image, partition, may_lead),
            isr_min=min(self._isr_min, len(partition.replicas)),
            is_elr_enabled=is_elr_enabled(image.features),
            is_unclean_allowed=is_unclean_allowed,
            shut_down_uncleanly=shut_down_uncleanly,
            is_preferred_wanted=is_preferred_wanted,
            is_epoch_raised_by_shrinking=is_leader_epoch_raised_by_shrinking(version),
            has_directories=has_directories(version),
            directory_of_new=partial(_default_directory, image),
        )


def _others(around: Surroundings, node: NodeId) -> MayLead:
    return lambda candidate: candidate != node and is_active(around.image, candidate)


def _changes(
    around: Surroundings,
    is_concerned: Callable[[Partition], bool],
    *,
    may_lead: MayLead,
    without: NodeId = NO_LEADER,
    is_lost: bool = False,
) -> list[PartitionChangeRecord]:
    lost = without if is_lost else NO_LEADER
    changes = []
    for topic in around.image.topics_by_id.values():
        concerned = [(i, p) for i, p in topic.partitions.items() if is_concerned(p)]
        if not concerned:
            continue
        elections = Elections(around, topic)
        for index, partition in concerned:
            circumstances = elections.of(partition, may_lead=may_lead, shut_down_uncleanly=lost)
            isr = tuple(node for node in partition.isr if node != without)
            target = Target.of(partition)._replace(isr=isr)
            change = change_of(topic.id, index, partition, target, circumstances)
            if change is not None:
                changes.append(change)
    return changes


def _may_lead_from_its_disk(
    image: ClusterImage, partition: Partition, may_lead: MayLead, node: NodeId
) -> bool:
    """A broker that lost the disk of a replica does not lead it, or an empty log would."""
    broker = image.brokers.get(node)
    return broker is not None and may_lead(node) and broker.has_disk_of(partition)


def _default_directory(image: ClusterImage, node: NodeId) -> Uuid:
    broker = image.brokers.get(node)
    return broker.default_directory if broker else UNASSIGNED_DIRECTORY
