"""AlterPartition as the controller decides it: a leader proposes who is in sync.

A proposal counts only if it comes from the leader of the present epoch and knows the partition as
it is now, and only brokers of the present incarnation may be named (KIP-903): one that restarted
since its fetch may have lost what that fetch proved.
"""

from typing import Any

from ottla.metadata.decisions.brokers import check_epoch
from ottla.metadata.decisions.context import Outcome, Surroundings
from ottla.metadata.decisions.elections import NotHeardYet, Target, change_of
from ottla.metadata.decisions.leaderships import Elections
from ottla.metadata.image.cluster import LEADER_UNCHANGED, RECOVERED, RECOVERING, Partition, Topic
from ottla.metadata.image.image import ClusterImage, merged
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_partition as wire

ANY_EPOCH = -1  # The leader did not say which incarnation it means.


def alter_partitions(around: Surroundings, request: wire.Request) -> Outcome:
    leader = check_epoch(around.image, request.broker_id, request.broker_epoch).id
    written: list[Any] = []
    response = wire.Response()
    for asked in request.topics:
        topic = around.image.topics_by_id.get(asked.topic_id)
        answers = []
        for part in asked.partitions:
            if topic is None:
                answers.append(_refused(part, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                answers.append(_alter(around, leader, topic, part, written))
        response.topics.append(wire.ResponseTopicData(asked.topic_id, answers))
    return Outcome(written, response)


def _alter(
    around: Surroundings,
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
    if not code and not all(_is_eligible(around.image, partition, state) for state in states):
        code = ErrorCode.INELIGIBLE_REPLICA
    if code:
        return _refused(asked, code)
    target = Target.of(partition)._replace(
        isr=isr, leader_recovery_state=asked.leader_recovery_state
    )
    circumstances = Elections(around, topic).of(
        partition, is_heard=lambda node: node == leader or around.is_heard(node)
    )
    try:
        change = change_of(topic.id, asked.partition_index, partition, target, circumstances)
    except NotHeardYet as refusal:  # It would end a reassignment that leaves the leader out.
        return _refused(asked, refusal.code)
    if change is not None:
        written.append(change)
        partition = merged(partition, change)
        if change.leader not in (leader, LEADER_UNCHANGED):
            # It ended a reassignment that leaves the leader out: it must learn who leads now.
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
        return ErrorCode.NOT_CONTROLLER  # Whoever told the leader that is the controller now.
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
        # Nobody can follow a leader that may yet find out what it lost.
        and not (asked.leader_recovery_state == RECOVERING and len(isr) > 1)
        and asked.leader_recovery_state <= partition.leader_recovery_state
    )
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


def _is_eligible(image: ClusterImage, partition: Partition, state: wire.BrokerState) -> bool:
    """A replica whose disk is lost has none of what its last fetch said that it had."""
    broker = image.brokers.get(NodeId(state.broker_id))
    return (
        broker is not None
        and broker.is_active
        and broker.has_disk_of(partition)
        and state.broker_epoch in (ANY_EPOCH, broker.epoch)
    )


def _refused(asked: wire.RequestPartitionData, code: ErrorCode) -> wire.ResponsePartitionData:
    return wire.ResponsePartitionData(partition_index=asked.partition_index, error_code=code)
