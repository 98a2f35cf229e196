"""AlterPartitionReassignments and ListPartitionReassignments.

A reassignment first adds the new replicas; it completes, with any later decision, once all target
replicas are in sync. Cancelling removes the new ones.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.elections import Target, change_of
from ottla.metadata.decisions.leaderships import Elections
from ottla.metadata.decisions.partition_assignment import check_assignment
from ottla.metadata.image.cluster import Partition, Topic
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_partition_reassignments as wire
from ottla.protocol.messages import list_partition_reassignments as list_wire
from ottla.protocol.metadata_records import PartitionChangeRecord


def alter_reassignments(context: DecisionContext, request: wire.Request) -> Outcome:
    written: list[Any] = []
    response = wire.Response(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
    )
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = wire.ReassignablePartitionResponse(asked.partition_index, error_message=None)
            try:
                change = _alter(context, topic.name, asked, request.allow_replication_factor_change)
            except Refusal as refusal:
                answer.error_code, answer.error_message = refusal.code, refusal.message
            else:
                if change is not None:
                    written.append(change)
            answers.append(answer)
        response.responses.append(wire.ReassignableTopicResponse(topic.name, answers))
    return Outcome(written, response)


def list_reassignments(context: DecisionContext, request: list_wire.Request) -> Outcome:
    response = list_wire.Response(error_message=None)
    for topic, indexes in _listed(context, request):
        ongoing = [
            list_wire.OngoingPartitionReassignment(
                index, list(partition.replicas), list(partition.adding), list(partition.removing)
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and is_moving(partition)
        ]
        if ongoing:
            response.topics.append(list_wire.OngoingTopicReassignment(topic.name, ongoing))
    return Outcome([], response)


def is_moving(partition: Partition) -> bool:
    return bool(partition.adding or partition.removing)


def move(
    context: DecisionContext, topic: Topic, index: int, nodes: Iterable[int]
) -> PartitionChangeRecord | None:
    """Start a reassignment to `nodes`, or complete it at once if they are in sync."""
    partition = topic.partitions[index]
    wanted = tuple(map(NodeId, nodes))
    before = partition.replicas
    removing = tuple(sorted(set(before).difference(wanted)))
    adding = tuple(sorted(set(wanted).difference(before)))
    target = Target.of(partition)._replace(replicas=(*wanted, *removing))
    # As in Kafka, removals of an earlier reassignment stay unless this one has its own.
    if removing:
        target = target._replace(removing=removing)
    if adding:
        target = target._replace(adding=adding)
    election = Elections(context, topic).of(partition, is_unclean_allowed=False)
    return change_of(topic.id, index, partition, target, election)


def _alter(
    context: DecisionContext, name: str, asked: wire.ReassignablePartition, may_change_factor: bool
) -> PartitionChangeRecord | None:
    topic = context.image.topics_by_name.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        message = f"Unable to find partition {name}:{asked.partition_index}."
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if asked.replicas is None:
        return _cancel(context, topic, asked.partition_index, partition)
    check_assignment(context.image, asked.replicas, None)
    factor = len(set(partition.replicas).difference(partition.adding))
    if not may_change_factor and len(asked.replicas) != factor:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(asked.replicas)}",
        )
    return move(context, topic, asked.partition_index, asked.replicas)


def _cancel(
    context: DecisionContext, topic: Topic, index: int, partition: Partition
) -> PartitionChangeRecord | None:
    if not is_moving(partition):
        message = "No partition reassignment is in progress."
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
    replicas = tuple(node for node in partition.replicas if node not in partition.adding)
    isr = tuple(node for node in partition.isr if node not in partition.adding)
    elections = Elections(context, topic)
    if not isr:
        # Only new replicas are in sync: cancelling would lose records.
        if not elections.is_unclean_allowed:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{index} because it would "
                "require an unclean leader election.",
            )
        isr = replicas[:1]
    target = Target.of(partition)._replace(isr=isr, replicas=replicas, adding=(), removing=())
    return change_of(topic.id, index, partition, target, elections.of(partition))


def _listed(
    context: DecisionContext, request: list_wire.Request
) -> Iterator[tuple[Topic, Iterable[int]]]:
    if request.topics is None:
        for _, topic in sorted(context.image.topics_by_name.items()):
            yield topic, sorted(topic.partitions)
        return
    for asked in request.topics:
        named = context.image.topics_by_name.get(asked.name)
        if named is not None:
            yield named, asked.partition_indexes
