"""Fetch (api key 1), versions 4 to 18: record batches to read, by consumers and followers.

v4   record batches of magic 2, isolation_level
v5   log_start_offset; log_start_offset in the response
v6   KAFKA_STORAGE_ERROR may be returned
v7   incremental fetch sessions
v8   throttled responses are sent at once; the client waits
v9   current_leader_epoch fences stale clients
v10  zstd may be returned
v11  rack_id; preferred_read_replica in the response
v12  flexible encoding; last_fetched_epoch, answered by diverging_epoch; current_leader
v13  topics by id instead of by name
v14  offsets may have moved to tiered storage
v15  replica_state with the broker epoch, instead of replica_id
v16  node_endpoints in the response
v17  replica_directory_id
v18  high_watermark as the follower knows it
"""

from typing import ClassVar

from ottla.protocol.schema import (
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    record_batches,
    string,
    struct,
    uuid,
)
from ottla.protocol.varint import Buffer


@message
class ReplicaState:
    replica_id: int = int32(-1)
    replica_epoch: int = int64(-1)


@message
class FetchPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(-1, since=9, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(-1, since=12)
    log_start_offset: int = int64(-1, since=5, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(since=17, tag=0, ignorable=True)
    high_watermark: int = int64((1 << 63) - 1, since=18, tag=1, ignorable=True)


@message
class FetchTopic:
    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


@message
class ForgottenTopic:
    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[int] = array(int32)


@message
class Request:
    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(4, 19)
    FLEXIBLE_SINCE: ClassVar = 12

    cluster_id: str | None = string(None, since=12, nullable=12, tag=0, ignorable=True)
    replica_id: int = int32(-1, until=14)
    replica_state: ReplicaState = struct(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32((1 << 31) - 1, ignorable=True)
    isolation_level: int = int8(ignorable=True)
    session_id: int = int32(since=7, ignorable=True)
    session_epoch: int = int32(-1, since=7, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11, ignorable=True)


@message
class EpochEndOffset:
    epoch: int = int32(-1)
    end_offset: int = int64(-1)


@message
class LeaderIdAndEpoch:
    leader_id: int = int32(-1)
    leader_epoch: int = int32(-1)


@message
class SnapshotId:
    end_offset: int = int64(-1)
    epoch: int = int32(-1)


@message
class AbortedTransaction:
    producer_id: int = int64()
    first_offset: int = int64()


@message
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(-1, ignorable=True)
    log_start_offset: int = int64(-1, since=5, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, nullable=0, ignorable=True
    )
    preferred_read_replica: int = int32(-1, since=11)
    records: Buffer | None = record_batches(nullable=0)


@message
class FetchableTopicResponse:
    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


@message
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(None, nullable=0)


@message
class Response:
    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(4, 19)
    FLEXIBLE_SINCE: ClassVar = 12

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)
