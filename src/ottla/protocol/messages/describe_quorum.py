"""DescribeQuorum (api key 55), versions 0 to 2:
leader, voters and observers of the quorum, and their offsets.

v1   last_fetch_timestamp, last_caught_up_timestamp in the response
v2   error_message, nodes, replica_directory_id in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string, uint16, uuid


@message
class RequestPartitionData:
    partition_index: int = int32()


@message
class RequestTopicData:
    topic_name: str = string()
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message
class Request:
    API_KEY: ClassVar = 55
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: list[RequestTopicData] = array(RequestTopicData)


@message
class ReplicaState:
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(since=2)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(-1, since=1, ignorable=True)
    last_caught_up_timestamp: int = int64(-1, since=1, ignorable=True)


@message
class ResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(since=2, nullable=2, ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@message
class ResponseTopicData:
    topic_name: str = string()
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@message
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message
class Node:
    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


@message
class Response:
    API_KEY: ClassVar = 55
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    error_code: int = int16()
    error_message: str | None = string(since=2, nullable=2, ignorable=True)
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    nodes: list[Node] = array(Node, since=2)
