"""What becomes of partitions when a broker goes, comes back, or comes back without its data."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial

from ottla.metadata.decisions.context import Surroundings, is_active
from ottla.metadata.decisions.elections import Circumstances, Target, change_of
from ottla.metadata.decisions.topic_configs import effective_config
from ottla.metadata.image.cluster import NO_LEADER, UNASSIGNED_DIRECTORY, Partition, Topic
from ottla.metadata.image.features import (
    has_directories,
    is_elr_enabled,
    is_leader_epoch_raised_by_shrinking,
)
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId, Uuid
from ottla.protocol.metadata_records import PartitionChangeRecord

MayLead = Callable[[NodeId], bool]


def leave(around: Surroundings, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` leaves every ISR and leads nothing; raises NotHeardYet."""
    return _changes(
        around,
        lambda partition: node in partition.isr,
        without=(node,),
        may_lead=_others(around, node),
    )


def expire(around: Surroundings, nodes: Collection[NodeId]) -> list[PartitionChangeRecord]:
    """The sessions of `nodes` ended: they leave every ISR together.

    One after the other, the first would leave its place to others whose state is as unknown, and
    would not become eligible (ELR) while these are enough for the minimum.
    """
    return _changes(
        replace(around, is_heard=lambda _: True),  # No answer will come: the wait ends here.
        lambda partition: not {*nodes}.isdisjoint(partition.isr),
        without=nodes,
        may_lead=_others(around, *nodes),
    )


def leave_directories(
    around: Surroundings, node: NodeId, directories: Collection[Uuid]
) -> list[PartitionChangeRecord]:
    """`node` leads nothing of what lies in these, and is in no ISR of it.

    While another that was heard has all of it, it is not eligible to lead either: it will begin
    with an empty log elsewhere. Where no other has what it has, it stays the one to wait for.
    Raises NotHeardYet.
    """

    def is_lost(partition: Partition) -> bool:
        return partition.directory_of(node) in directories

    others = _others(around, node)
    return [
        *_changes(
            around,
            lambda p: is_lost(p) and _is_spare(around, p, node) and node in (*p.isr, *p.elr),
            without=(node,),
            may_lead=others,
            lost=node,
        ),
        *_changes(
            around,
            lambda p: is_lost(p) and not _is_spare(around, p, node) and node in p.isr,
            without=(node,),
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
        without=(node,),
        may_lead=_others(around, node),
        lost=node,
    )


def forget(around: Surroundings, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` leaves the cluster and every ISR; raises NotHeardYet.

    As with Kafka it may stay in an ELR: if it registers again, that is without a previous epoch.
    """
    return _changes(
        around,
        lambda partition: node in partition.isr or node in partition.elr,
        without=(node,),
        may_lead=_others(around, node),
    )


def leave_partitions(
    around: Surroundings, node: NodeId, concerned: Iterable[tuple[Uuid, int, Partition]]
) -> list[PartitionChangeRecord]:
    """`node` leaves the ISR of these, as they will be by then: their disk is offline.

    While others have all of it, it leaves the ELR too, as with `leave_directories`.
    """
    changes = []
    for topic_id, index, partition in concerned:
        is_spare = _is_spare(around, partition, node)
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
        is_heard: Callable[[NodeId], bool] | None = None,
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
            is_heard=is_heard or self._around.is_heard,
            is_preferred_wanted=is_preferred_wanted,
            is_epoch_raised_by_shrinking=is_leader_epoch_raised_by_shrinking(version),
            has_directories=has_directories(version),
            directory_of_new=partial(_default_directory, image),
        )


def _others(around: Surroundings, *nodes: NodeId) -> MayLead:
    return lambda candidate: candidate not in nodes and is_active(around.image, candidate)


def _is_spare(around: Surroundings, partition: Partition, node: NodeId) -> bool:
    """True if another broker that has contacted this controller is in sync, or eligible and alive.

    An eligible one leads as soon as `node`, the last in the ISR, leaves it.
    """
    eligible = [n for n in partition.elr if around.image.has_live_replica(partition, n)]
    return any(other != node and around.is_heard(other) for other in (*partition.isr, *eligible))


def _changes(
    around: Surroundings,
    is_concerned: Callable[[Partition], bool],
    *,
    may_lead: MayLead,
    without: Collection[NodeId] = (),
    lost: NodeId = NO_LEADER,
) -> list[PartitionChangeRecord]:
    changes = []
    for topic in around.image.topics_by_id.values():
        concerned = [(i, p) for i, p in topic.partitions.items() if is_concerned(p)]
        if not concerned:
            continue
        elections = Elections(around, topic)
        for index, partition in concerned:
            circumstances = elections.of(partition, may_lead=may_lead, shut_down_uncleanly=lost)
            isr = _isr_without(around, partition, without)
            target = Target.of(partition)._replace(isr=isr)
            change = change_of(topic.id, index, partition, target, circumstances)
            if change is not None:
                changes.append(change)
    return changes


def _isr_without(
    around: Surroundings, partition: Partition, nodes: Collection[NodeId]
) -> tuple[NodeId, ...]:
    """The ISR that remains. Without an ELR the last member stays in it: the leader, if possible."""
    isr = tuple(node for node in partition.isr if node not in nodes)
    if isr or is_elr_enabled(around.image.features):
        return isr
    return (partition.leader,) if partition.leader in partition.isr else partition.isr[:1]


def _may_lead_from_its_disk(
    image: ClusterImage, partition: Partition, may_lead: MayLead, node: NodeId
) -> bool:
    """A broker that lost the disk of a replica does not lead it, or an empty log would."""
    broker = image.brokers.get(node)
    return broker is not None and may_lead(node) and broker.has_disk_of(partition)


def _default_directory(image: ClusterImage, node: NodeId) -> Uuid:
    broker = image.brokers.get(node)
    return broker.default_directory if broker else UNASSIGNED_DIRECTORY
