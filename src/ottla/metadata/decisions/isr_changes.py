"""The decision of AlterPartition: a leader proposes an ISR.

A proposal is accepted only from the leader of the current epoch with the current partition epoch,
and only for brokers of the current incarnation (KIP-903): one that restarted since its fetch may
have lost the fetched records.
"""

from typing import Any

from ottla.metadata.decisions.brokers import check_epoch
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.elections import NotContactedYet, Target, change_of
from ottla.metadata.decisions.leaderships import Elections
from ottla.metadata.image.cluster import LEADER_UNCHANGED, RECOVERED, RECOVERING, Partition, Topic
from ottla.metadata.image.image import ClusterImage, merged
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_partition as wire

ANY_EPOCH = -1  # The leader named no incarnation.


def alter_partitions(context: DecisionContext, request: wire.Request) -> Outcome:
    leader = check_epoch(context.image, request.broker_id, request.broker_epoch).id
    written: list[Any] = []
    response = wire.Response()
    for asked in request.topics:
        topic = context.image.topics_by_id.get(asked.topic_id)
        answers = []
        for part in asked.partitions:
            if topic is None:
                answers.append(_refused(part, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                answers.append(_alter(context, leader, topic, part, written))
        response.topics.append(wire.ResponseTopicData(asked.topic_id, answers))
    return Outcome(written, response)


def _alter(
    context: DecisionContext,
    leader: NodeId,
    topic: Topic,
    asked: wire.RequestPartitionData,
    written: list[Any],
) -> wire.ResponsePartitionData:
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    states = asked.new_isr_with_epochs or [wire.BrokerState(node) for node in asked.new_isr]
    isr = tuple(NodeId(state.broker_id) for state in states)
    code = _check_epochs(leader, partition, asked) or _check_isr(partition, asked, isr)
    if not code and not all(_is_eligible(context.image, partition, state) for state in states):
        code = ErrorCode.INELIGIBLE_REPLICA
    if code:
        return _refused(asked, code)
    target = Target.of(partition)._replace(
        isr=isr, leader_recovery_state=asked.leader_recovery_state
    )
    election = Elections(context, topic).of(
        partition, has_contacted=lambda node: node == leader or context.has_contacted(node)
    )
    try:
        change = change_of(topic.id, asked.partition_index, partition, target, election)
    except NotContactedYet as refusal:  # It would complete a reassignment that excludes the leader.
        return _refused(asked, refusal.code)
    if change is not None:
        written.append(change)
        partition = merged(partition, change)
        if change.leader not in (leader, LEADER_UNCHANGED):
            # It completed a reassignment that excludes the leader, which must learn of the new one.
            return _refused(asked, ErrorCode.NEW_LEADER_ELECTED)
    return wire.ResponsePartitionData(
        partition_index=asked.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _check_epochs(
    leader: NodeId, partition: Partition, asked: wire.RequestPartitionData
) -> ErrorCode:
    if (
        asked.leader_epoch > partition.leader_epoch
        or asked.partition_epoch > partition.partition_epoch
    ):
        return ErrorCode.NOT_CONTROLLER  # A higher leader epoch comes from a newer controller.
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


def _check_isr(
    partition: Partition, asked: wire.RequestPartitionData, isr: tuple[NodeId, ...]
) -> ErrorCode:
    is_valid = (
        len(set(isr)) == len(isr)
        and set(isr).issubset(partition.replicas)
        and partition.leader in isr
        and asked.leader_recovery_state in (RECOVERED, RECOVERING)
        # No replica can follow a leader that is still recovering from an unclean election.
        and not (asked.leader_recovery_state == RECOVERING and len(isr) > 1)
        and asked.leader_recovery_state <= partition.leader_recovery_state
    )
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


def _is_eligible(image: ClusterImage, partition: Partition, state: wire.BrokerState) -> bool:
    """A replica on a lost disk no longer has the records that it fetched."""
    broker = image.brokers.get(NodeId(state.broker_id))
    return (
        broker is not None
        and broker.is_active
        and broker.has_disk_of(partition)
        and state.broker_epoch in (ANY_EPOCH, broker.epoch)
    )


def _refused(asked: wire.RequestPartitionData, code: ErrorCode) -> wire.ResponsePartitionData:
    return wire.ResponsePartitionData(partition_index=asked.partition_index, error_code=code)
