"""ElectLeaders (api key 43), versions 0 to 2: give partitions their preferred leader, or any.

v1   election_type; error_code in the response
v2   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, message, string


@message
class TopicPartitions:
    topic: str = string()
    partitions: list[int] = array(int32)


@message
class Request:
    API_KEY: ClassVar = 43
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=0)
    timeout_ms: int = int32(60000)


@message
class PartitionResult:
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class ReplicaElectionResult:
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@message
class Response:
    API_KEY: ClassVar = 43
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
