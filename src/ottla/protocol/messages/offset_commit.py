"""OffsetCommit (api key 8), versions 2 to 10: the committed offsets of a group.

v2   the oldest that Kafka still supports
v3   throttle_time_ms in the response
v4   throttled responses are sent at once; the client waits
v5   without retention_time_ms: the broker decides how long offsets live
v6   committed_leader_epoch
v7   group_instance_id
v8   flexible encoding
v9   for consumer groups too: member epochs, STALE_MEMBER_EPOCH
v10  topics by id instead of by name
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string, uuid


@message
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(-1, since=6, ignorable=True)
    committed_metadata: str | None = string(nullable=0)


@message
class OffsetCommitRequestTopic:
    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message
class Request:
    API_KEY: ClassVar = 8
    VERSIONS: ClassVar = range(2, 11)
    FLEXIBLE_SINCE: ClassVar = 8

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(-1, ignorable=True)
    member_id: str = string(ignorable=True)
    group_instance_id: str | None = string(None, since=7, nullable=7)
    retention_time_ms: int = int64(-1, until=4, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@message
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@message
class OffsetCommitResponseTopic:
    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message
class Response:
    API_KEY: ClassVar = 8
    VERSIONS: ClassVar = range(2, 11)
    FLEXIBLE_SINCE: ClassVar = 8

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
