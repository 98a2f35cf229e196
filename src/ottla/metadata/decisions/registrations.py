"""ControllerRegistration and AssignReplicasToDirs: reports of nodes about themselves."""

from typing import Any

from ottla.metadata.decisions import leaderships
from ottla.metadata.decisions.brokers import check_epoch
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.image.cluster import Partition
from ottla.metadata.image.features import has_controller_registration, has_directories
from ottla.metadata.image.image import merged
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId, Uuid
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import assign_replicas_to_dirs, controller_registration


def register_controller(
    context: DecisionContext, request: controller_registration.Request
) -> Outcome:
    if not has_controller_registration(context.image.metadata_version):
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    record = records.RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            records.ControllerEndpoint(e.name, e.host, e.port, e.security_protocol)
            for e in request.listeners
        ],
        features=[
            records.ControllerFeature(f.name, f.min_supported_version, f.max_supported_version)
            for f in request.features
        ],
    )
    return Outcome([record], controller_registration.Response())


def assign_directories(
    context: DecisionContext, request: assign_replicas_to_dirs.Request
) -> Outcome:
    """Store the log directories in which a broker keeps replicas."""
    image = context.image
    if not has_directories(image.metadata_version):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    written: list[Any] = []
    offline: list[tuple[Uuid, int, Partition]] = []
    response = assign_replicas_to_dirs.Response()
    for directory in request.directories:
        answered = assign_replicas_to_dirs.ResponseDirectoryData(id=directory.id)
        for topic in directory.topics:
            answers = []
            for partition in topic.partitions:
                index = partition.partition_index
                assigned = _assign(context, broker.id, directory.id, topic.topic_id, index, written)
                code = assigned if isinstance(assigned, ErrorCode) else ErrorCode.NONE
                answers.append(assign_replicas_to_dirs.ResponsePartitionData(index, code))
                if not isinstance(assigned, ErrorCode) and directory.id not in broker.directories:
                    offline.append((topic.topic_id, index, assigned))
            answered.topics.append(
                assign_replicas_to_dirs.ResponseTopicData(topic.topic_id, answers)
            )
        response.directories.append(answered)
    written += leaderships.leave_partitions(context, broker.id, offline)
    return Outcome(written, response)


def _assign(
    context: DecisionContext,
    node: NodeId,
    directory: Uuid,
    topic_id: Uuid,
    index: int,
    written: list[Any],
) -> ErrorCode | Partition:
    """The partition's new state, or an error."""
    topic = context.image.topics_by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if node not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    directories = [
        directory if replica == node else known
        for replica, known in zip(partition.replicas, partition.directories, strict=True)
    ]
    if directories == list(partition.directories):
        return partition
    change = records.PartitionChangeRecord(
        partition_id=index, topic_id=topic_id, directories=directories
    )
    written.append(change)
    return merged(partition, change)
