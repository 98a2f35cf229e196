"""Metadata (api key 3), versions 0 to 13: brokers, topics, and partition leaders.

v1   rack, controller_id, is_internal in the response; topics may be null
v2   cluster_id in the response
v3   throttle_time_ms in the response
v4   allow_auto_topic_creation
v5   offline_replicas in the response
v6   throttled responses are sent at once; the client waits
v7   leader_epoch in the response
v8   which operations the caller may perform, if asked for
v9   flexible encoding
v10  topics by id: topic_id, and a name that may be null
v11  include_cluster_authorized_operations and its answer move to DescribeCluster
v12  asking by id works; name may be null in the response
v13  error_code in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, message, string, uuid


@message
class MetadataRequestTopic:
    topic_id: bytes = uuid(since=10, ignorable=True)
    name: str | None = string(nullable=10)


@message
class Request:
    API_KEY: ClassVar = 3
    VERSIONS: ClassVar = range(0, 14)
    FLEXIBLE_SINCE: ClassVar = 9

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable=1)
    allow_auto_topic_creation: bool = boolean(True, since=4)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


@message
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(None, since=1, nullable=1, ignorable=True)


@message
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(-1, since=7, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, since=5, ignorable=True)


@message
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable=12)
    topic_id: bytes = uuid(since=10, ignorable=True)
    is_internal: bool = boolean(since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(-(1 << 31), since=8)


@message
class Response:
    API_KEY: ClassVar = 3
    VERSIONS: ClassVar = range(0, 14)
    FLEXIBLE_SINCE: ClassVar = 9

    throttle_time_ms: int = int32(since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(None, since=2, nullable=2, ignorable=True)
    controller_id: int = int32(-1, since=1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(-(1 << 31), since=8, until=10)
    error_code: int = int16(since=13, ignorable=True)
