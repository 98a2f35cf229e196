"""DescribeTopicPartitions (api key 75), version 0: partitions of topics, page by page."""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, message, string, struct, uuid


@message
class TopicRequest:
    name: str = string()


@message
class Cursor:
    topic_name: str = string()
    partition_index: int = int32()


@message
class Request:
    API_KEY: ClassVar = 75
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(2000)
    cursor: Cursor | None = struct(Cursor, default=None, nullable=0)


@message
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    eligible_leader_replicas: list[int] | None = array(int32, default=None, nullable=0)
    last_known_elr: list[int] | None = array(int32, default=None, nullable=0)
    offline_replicas: list[int] = array(int32, ignorable=True)


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable=0)
    topic_id: bytes = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(-(1 << 31))


@message
class Response:
    API_KEY: ClassVar = 75
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, default=None, nullable=0)
