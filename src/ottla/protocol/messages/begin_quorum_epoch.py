"""BeginQuorumEpoch (api key 53), versions 0 to 1: a new quorum leader notifies the voters.

v1   flexible encoding; voter_id, voter_directory_id, leader_endpoints; response: node_endpoints
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string, uint16, uuid


@message
class RequestPartitionData:
    partition_index: int = int32()
    voter_directory_id: bytes = uuid(since=1, ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()


@message
class RequestTopicData:
    topic_name: str = string()
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message
class Request:
    API_KEY: ClassVar = 53
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    cluster_id: str | None = string(None, nullable=0)
    voter_id: int = int32(-1, since=1, ignorable=True)
    topics: list[RequestTopicData] = array(RequestTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, since=1, ignorable=True)


@message
class ResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@message
class ResponseTopicData:
    topic_name: str = string()
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@message
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message
class Response:
    API_KEY: ClassVar = 53
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    error_code: int = int16()
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
