"""OffsetFetch (api key 9), versions 1 to 10: the committed offsets of a group.

v1   offsets that the broker keeps, not ZooKeeper
v2   topics may be null for all; error_code in the response
v3   throttle_time_ms in the response
v4   throttled responses are sent at once; the client waits
v5   committed_leader_epoch in the response
v6   flexible encoding
v7   require_stable
v8   several groups in one request
v9   member_id, member_epoch
v10  topics by id instead of by name
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, string, uuid


@message
class OffsetFetchRequestTopic:
    name: str = string(until=7)
    partition_indexes: list[int] = array(int32, until=7)


@message
class OffsetFetchRequestTopics:
    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partition_indexes: list[int] = array(int32)


@message
class OffsetFetchRequestGroup:
    group_id: str = string()
    member_id: str | None = string(None, since=9, nullable=9, ignorable=True)
    member_epoch: int = int32(-1, since=9, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable=0)


@message
class Request:
    API_KEY: ClassVar = 9
    VERSIONS: ClassVar = range(1, 11)
    FLEXIBLE_SINCE: ClassVar = 6

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, until=7, nullable=(2, 7)
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)


@message
class OffsetFetchResponsePartition:
    partition_index: int = int32(until=7)
    committed_offset: int = int64(until=7)
    committed_leader_epoch: int = int32(-1, since=5, until=7, ignorable=True)
    metadata: str | None = string(until=7, nullable=(0, 7))
    error_code: int = int16(until=7)


@message
class OffsetFetchResponseTopic:
    name: str = string(until=7)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, until=7)


@message
class OffsetFetchResponsePartitions:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(-1, ignorable=True)
    metadata: str | None = string(nullable=0)
    error_code: int = int16()


@message
class OffsetFetchResponseTopics:
    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


@message
class OffsetFetchResponseGroup:
    group_id: str = string()
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = int16()


@message
class Response:
    API_KEY: ClassVar = 9
    VERSIONS: ClassVar = range(1, 11)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)
