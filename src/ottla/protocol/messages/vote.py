"""Vote (api key 52), versions 0 to 2: a candidate asks a voter for its vote.

v1   voter_id and directory ids; node_endpoints in the response
v2   pre_vote: ask without raising the epoch
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, string, uint16, uuid


@message
class RequestPartitionData:
    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(since=1, ignorable=True)
    voter_directory_id: bytes = uuid(since=1, ignorable=True)
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean(since=2)


@message
class RequestTopicData:
    topic_name: str = string()
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message
class Request:
    API_KEY: ClassVar = 52
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: str | None = string(None, nullable=0)
    voter_id: int = int32(-1, since=1, ignorable=True)
    topics: list[RequestTopicData] = array(RequestTopicData)


@message
class ResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


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
    API_KEY: ClassVar = 52
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    error_code: int = int16()
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
