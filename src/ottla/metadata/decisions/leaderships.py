"""Partition changes when a broker leaves, returns, or returns without its data."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial

from ottla.metadata.decisions.context import DecisionContext, is_active
from ottla.metadata.decisions.elections import ElectionContext, Target, change_of
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


def leave(context: DecisionContext, node: NodeId) -> list[PartitionChangeRecord]:
    """Remove `node` from every ISR and leadership; raises NotContactedYet."""
    return _changes(
        context,
        lambda partition: node in partition.isr,
        without=(node,),
        may_lead=_others(context, node),
    )


def expire(context: DecisionContext, nodes: Collection[NodeId]) -> list[PartitionChangeRecord]:
    """Remove `nodes`, whose sessions expired, from every ISR in one step.

    One by one, the first would leave the ISR to others whose state is equally unknown, and would
    not become eligible (ELR) while these satisfy the minimum.
    """
    return _changes(
        replace(
            context, has_contacted=lambda _: True
        ),  # The sessions expired: no contact will come.
        lambda partition: not {*nodes}.isdisjoint(partition.isr),
        without=nodes,
        may_lead=_others(context, *nodes),
    )


def leave_directories(
    context: DecisionContext, node: NodeId, directories: Collection[Uuid]
) -> list[PartitionChangeRecord]:
    """Remove `node` from leadership and ISR of all its replicas in `directories`.

    While another broker that has contacted this controller holds everything, `node` leaves the ELR
    too: it will start with an empty log elsewhere. Otherwise it stays eligible and is waited for.
    Raises NotContactedYet.
    """

    def is_lost(partition: Partition) -> bool:
        return partition.directory_of(node) in directories

    others = _others(context, node)
    return [
        *_changes(
            context,
            lambda p: is_lost(p) and _is_spare(context, p, node) and node in (*p.isr, *p.elr),
            without=(node,),
            may_lead=others,
            lost=node,
        ),
        *_changes(
            context,
            lambda p: is_lost(p) and not _is_spare(context, p, node) and node in p.isr,
            without=(node,),
            may_lead=others,
        ),
    ]


def come_back(context: DecisionContext, node: NodeId) -> list[PartitionChangeRecord]:
    """Let `node` lead partitions without a leader again."""

    def may_lead(candidate: NodeId) -> bool:
        return candidate == node or is_active(context.image, candidate)

    return _changes(context, lambda partition: partition.leader == NO_LEADER, may_lead=may_lead)


def lose(context: DecisionContext, node: NodeId) -> list[PartitionChangeRecord]:
    """`node` stopped uncleanly: it may not hold all records it acknowledged."""
    return _changes(
        context,
        lambda partition: node in partition.isr or node in partition.elr,
        without=(node,),
        may_lead=_others(context, node),
        lost=node,
    )


def forget(context: DecisionContext, node: NodeId) -> list[PartitionChangeRecord]:
    """Remove `node` from the cluster and from every ISR; raises NotContactedYet.

    As in Kafka it may stay in an ELR: it can only register again without a previous epoch.
    """
    return _changes(
        context,
        lambda partition: node in partition.isr or node in partition.elr,
        without=(node,),
        may_lead=_others(context, node),
    )


def leave_partitions(
    context: DecisionContext, node: NodeId, concerned: Iterable[tuple[Uuid, int, Partition]]
) -> list[PartitionChangeRecord]:
    """Remove `node` from the ISR of these partitions, given in their new state: their disk is
    offline.

    While others hold everything, it leaves the ELR too, as with `leave_directories`.
    """
    changes = []
    for topic_id, index, partition in concerned:
        is_spare = _is_spare(context, partition, node)
        if node not in partition.isr and not (is_spare and node in partition.elr):
            continue
        topic = context.image.topics_by_id[topic_id]
        election = Elections(context, topic).of(
            partition,
            may_lead=_others(context, node),
            shut_down_uncleanly=node if is_spare else NO_LEADER,
        )
        isr = tuple(other for other in partition.isr if other != node)
        target = Target.of(partition)._replace(isr=isr)
        change = change_of(topic_id, index, partition, target, election)
        if change is not None:
            changes.append(change)
    return changes


def is_needed(context: DecisionContext, node: NodeId) -> bool:
    """True if `node` leads a partition, or is in an ISR together with others."""
    return any(
        partition.leader == node or (node in partition.isr and len(partition.isr) > 1)
        for topic in context.image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


class Elections:
    """Election settings of one topic; its configs are looked up once."""

    def __init__(self, context: DecisionContext, topic: Topic) -> None:
        self._context = context
        self._isr_min = int(effective_config(context, topic.name, "min.insync.replicas") or 1)
        self.is_unclean_allowed = (
            effective_config(context, topic.name, "unclean.leader.election.enable") == "true"
        )

    def of(
        self,
        partition: Partition,
        *,
        may_lead: MayLead | None = None,
        is_unclean_allowed: bool | None = None,
        is_preferred_wanted: bool = False,
        shut_down_uncleanly: NodeId = NO_LEADER,
        has_contacted: Callable[[NodeId], bool] | None = None,
    ) -> ElectionContext:
        image = self._context.image
        version = image.metadata_version
        if may_lead is None:
            may_lead = partial(is_active, image)
        if is_unclean_allowed is None:
            is_unclean_allowed = self.is_unclean_allowed
        return ElectionContext(
            may_lead=partial(_may_lead_from_its_disk, image, partition, may_lead),
            isr_min=min(self._isr_min, len(partition.replicas)),
            is_elr_enabled=is_elr_enabled(image.features),
            is_unclean_allowed=is_unclean_allowed,
            shut_down_uncleanly=shut_down_uncleanly,
            has_contacted=has_contacted or self._context.has_contacted,
            is_preferred_wanted=is_preferred_wanted,
            is_epoch_raised_by_shrinking=is_leader_epoch_raised_by_shrinking(version),
            has_directories=has_directories(version),
            directory_of_new=partial(_default_directory, image),
        )


def _others(context: DecisionContext, *nodes: NodeId) -> MayLead:
    return lambda candidate: candidate not in nodes and is_active(context.image, candidate)


def _is_spare(context: DecisionContext, partition: Partition, node: NodeId) -> bool:
    """True if another broker that has contacted this controller is in sync, or eligible and alive.

    An eligible one is elected as soon as `node`, the last ISR member, leaves.
    """
    eligible = [n for n in partition.elr if context.image.has_live_replica(partition, n)]
    return any(
        other != node and context.has_contacted(other) for other in (*partition.isr, *eligible)
    )


def _changes(
    context: DecisionContext,
    is_concerned: Callable[[Partition], bool],
    *,
    may_lead: MayLead,
    without: Collection[NodeId] = (),
    lost: NodeId = NO_LEADER,
) -> list[PartitionChangeRecord]:
    changes = []
    for topic in context.image.topics_by_id.values():
        concerned = [(i, p) for i, p in topic.partitions.items() if is_concerned(p)]
        if not concerned:
            continue
        elections = Elections(context, topic)
        for index, partition in concerned:
            election = elections.of(partition, may_lead=may_lead, shut_down_uncleanly=lost)
            isr = _isr_without(context, partition, without)
            target = Target.of(partition)._replace(isr=isr)
            change = change_of(topic.id, index, partition, target, election)
            if change is not None:
                changes.append(change)
    return changes


def _isr_without(
    context: DecisionContext, partition: Partition, nodes: Collection[NodeId]
) -> tuple[NodeId, ...]:
    """The remaining ISR. Without an ELR its last member stays: the leader, if possible."""
    isr = tuple(node for node in partition.isr if node not in nodes)
    if isr or is_elr_enabled(context.image.features):
        return isr
    return (partition.leader,) if partition.leader in partition.isr else partition.isr[:1]


def _may_lead_from_its_disk(
    image: ClusterImage, partition: Partition, may_lead: MayLead, node: NodeId
) -> bool:
    """A broker that lost the disk of a replica must not lead it with an empty log."""
    broker = image.brokers.get(node)
    return broker is not None and may_lead(node) and broker.has_disk_of(partition)


def _default_directory(image: ClusterImage, node: NodeId) -> Uuid:
    broker = image.brokers.get(node)
    return broker.default_directory if broker else UNASSIGNED_DIRECTORY
