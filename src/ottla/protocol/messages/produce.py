"""Produce (api key 0), versions 3 to 13: record batches to append.

v3   record batches of magic 2; the message sets of v0 to v2 are gone
v4   KAFKA_STORAGE_ERROR may be returned
v5   log_start_offset in the response
v6   throttled responses are sent at once; the client waits
v7   zstd is allowed
v8   record_errors, error_message in the response
v9   flexible encoding
v10  current_leader, node_endpoints in the response
v11  TRANSACTION_ABORTABLE may be returned
v12  partitions join the transaction by being produced to
v13  topics by id instead of by name
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
    uuid,
)
from ottla.protocol.varint import Buffer


@message
class PartitionProduceData:
    index: int = int32()
    records: Buffer | None = record_batches(nullable=0)


@message
class TopicProduceData:
    name: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message
class Request:
    API_KEY: ClassVar = 0
    VERSIONS: ClassVar = range(3, 14)
    FLEXIBLE_SINCE: ClassVar = 9

    transactional_id: str | None = string(None, nullable=0)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@message
class BatchIndexAndErrorMessage:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(None, nullable=0)


@message
class LeaderIdAndEpoch:
    leader_id: int = int32(-1)
    leader_epoch: int = int32(-1)


@message
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(-1, ignorable=True)
    log_start_offset: int = int64(-1, since=5, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, since=8, ignorable=True
    )
    error_message: str | None = string(None, since=8, nullable=8, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=10, tag=0)


@message
class TopicProduceResponse:
    name: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@message
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(None, nullable=0)


@message
class Response:
    API_KEY: ClassVar = 0
    VERSIONS: ClassVar = range(3, 14)
    FLEXIBLE_SINCE: ClassVar = 9

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)
