"""AlterPartitionReassignments (api key 45), versions 0 to 1:
move partitions to other brokers, or cancel it.

v1   allow_replication_factor_change, in the response too
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, message, string


@message
class ReassignablePartition:
    partition_index: int = int32()
    replicas: list[int] | None = array(int32, default=None, nullable=0)


@message
class ReassignableTopic:
    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message
class Request:
    API_KEY: ClassVar = 45
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    timeout_ms: int = int32(60000)
    allow_replication_factor_change: bool = boolean(True, since=1)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@message
class ReassignablePartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class ReassignableTopicResponse:
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message
class Response:
    API_KEY: ClassVar = 45
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(True, since=1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
