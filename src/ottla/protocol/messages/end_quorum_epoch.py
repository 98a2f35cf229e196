"""EndQuorumEpoch (api key 54), versions 0 to 1: a leader of the quorum resigns.

v1   flexible encoding; preferred_candidates instead of preferred_successors; leader_endpoints
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string, uint16, uuid


@message
class ReplicaInfo:
    candidate_id: int = int32()
    candidate_directory_id: bytes = uuid()


@message
class RequestPartitionData:
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(int32, until=0, ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, since=1, ignorable=True)


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
    API_KEY: ClassVar = 54
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    cluster_id: str | None = string(None, nullable=0)
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
    API_KEY: ClassVar = 54
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    error_code: int = int16()
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
