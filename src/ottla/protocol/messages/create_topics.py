"""CreateTopics (api key 19), versions 2 to 7: new topics with their configs.

v2   throttle_time_ms in the response
v3   throttled responses are sent at once; the client waits
v4   -1 partitions or replicas mean the default of the broker
v5   flexible encoding; the answer describes the topic and its configs
v6   THROTTLING_QUOTA_EXCEEDED may be returned
v7   topic_id in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string, uuid


@message
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


@message
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable=0)


@message
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message
class Request:
    API_KEY: ClassVar = 19
    VERSIONS: ClassVar = range(2, 8)
    FLEXIBLE_SINCE: ClassVar = 5

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(60000)
    validate_only: bool = boolean()


@message
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable=0)
    read_only: bool = boolean()
    config_source: int = int8(-1, ignorable=True)
    is_sensitive: bool = boolean()


@message
class CreatableTopicResult:
    name: str = string()
    topic_id: bytes = uuid(since=7, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable=0, ignorable=True)
    topic_config_error_code: int = int16(since=5, tag=0, ignorable=True)
    num_partitions: int = int32(-1, since=5, ignorable=True)
    replication_factor: int = int16(-1, since=5, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, since=5, nullable=5, ignorable=True
    )


@message
class Response:
    API_KEY: ClassVar = 19
    VERSIONS: ClassVar = range(2, 8)
    FLEXIBLE_SINCE: ClassVar = 5

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
