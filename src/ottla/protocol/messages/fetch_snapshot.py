"""FetchSnapshot (api key 59), versions 0 to 1: a piece of a snapshot of the metadata log.

v1   replica_directory_id; node_endpoints in the response
"""

from typing import ClassVar

from ottla.protocol.schema import (
    array,
    int16,
    int32,
    int64,
    message,
    record_batches,
    string,
    struct,
    uint16,
    uuid,
)
from ottla.protocol.varint import Buffer


@message
class SnapshotId:
    end_offset: int = int64()
    epoch: int = int32()


@message
class RequestPartitionSnapshot:
    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotId = struct(SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid(since=1, tag=0, ignorable=True)


@message
class RequestTopicSnapshot:
    name: str = string()
    partitions: list[RequestPartitionSnapshot] = array(RequestPartitionSnapshot)


@message
class Request:
    API_KEY: ClassVar = 59
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: str | None = string(None, nullable=0, tag=0)
    replica_id: int = int32(-1)
    max_bytes: int = int32((1 << 31) - 1)
    topics: list[RequestTopicSnapshot] = array(RequestTopicSnapshot)


@message
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@message
class ResponsePartitionSnapshot:
    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotId = struct(SnapshotId)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: Buffer = record_batches(b"")


@message
class ResponseTopicSnapshot:
    name: str = string()
    partitions: list[ResponsePartitionSnapshot] = array(ResponsePartitionSnapshot)


@message
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message
class Response:
    API_KEY: ClassVar = 59
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    topics: list[ResponseTopicSnapshot] = array(ResponseTopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
