"""The records of consumer groups (KIP-848) in `__consumer_offsets`, as Kafka writes them.

A group has an epoch; each member its metadata, a target assignment and a current assignment; each
regular expression the topics that it matched.
"""

from typing import ClassVar, Final

from ottla.protocol.schema import (
    NEVER,
    array,
    binary,
    int8,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)


@message
class ConsumerGroupMetadataKey:
    API_KEY: ClassVar = 3
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()


@message
class ConsumerGroupMetadataValue:
    API_KEY: ClassVar = 3
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@message
class ConsumerGroupPartitionMetadataKey:
    API_KEY: ClassVar = 4
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()


@message
class PartitionMetadata:
    partition: int = int32()
    racks: list[str] = array(string)


@message
class TopicMetadata:
    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


@message
class ConsumerGroupPartitionMetadataValue:
    API_KEY: ClassVar = 4
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: list[TopicMetadata] = array(TopicMetadata)


@message
class ConsumerGroupMemberMetadataKey:
    API_KEY: ClassVar = 5
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()
    member_id: str = string()


@message
class ClassicProtocol:
    name: str = string()
    metadata: bytes = binary()


@message
class ClassicMemberMetadata:
    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


@message
class ConsumerGroupMemberMetadataValue:
    API_KEY: ClassVar = 5
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    instance_id: str | None = string(nullable=0)
    rack_id: str | None = string(nullable=0)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable=0)
    rebalance_timeout_ms: int = int32(-1)
    server_assignor: str | None = string(nullable=0)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable=0, tag=0
    )


@message
class ConsumerGroupTargetAssignmentMetadataKey:
    API_KEY: ClassVar = 6
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()


@message
class ConsumerGroupTargetAssignmentMetadataValue:
    API_KEY: ClassVar = 6
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message
class ConsumerGroupTargetAssignmentMemberKey:
    API_KEY: ClassVar = 7
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()
    member_id: str = string()


@message
class TargetTopicPartition:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


@message
class ConsumerGroupTargetAssignmentMemberValue:
    API_KEY: ClassVar = 7
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topic_partitions: list[TargetTopicPartition] = array(TargetTopicPartition)


@message
class ConsumerGroupCurrentMemberAssignmentKey:
    API_KEY: ClassVar = 8
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()
    member_id: str = string()


@message
class CurrentTopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable=0, tag=0)


@message
class ConsumerGroupCurrentMemberAssignmentValue:
    API_KEY: ClassVar = 8
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)
    partitions_pending_revocation: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)


@message
class ConsumerGroupRegularExpressionKey:
    API_KEY: ClassVar = 16
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()
    regular_expression: str = string()


@message
class ConsumerGroupRegularExpressionValue:
    API_KEY: ClassVar = 16
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()


VALUES: Final[dict[type, type]] = {
    ConsumerGroupMetadataKey: ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey: ConsumerGroupPartitionMetadataValue,
    ConsumerGroupMemberMetadataKey: ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey: ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupRegularExpressionKey: ConsumerGroupRegularExpressionValue,
}
