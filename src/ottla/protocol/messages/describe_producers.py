"""DescribeProducers (api key 61), version 0: producers with state in a partition."""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string


@message
class TopicRequest:
    name: str = string()
    partition_indexes: list[int] = array(int32)


@message
class Request:
    API_KEY: ClassVar = 61
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: list[TopicRequest] = array(TopicRequest)


@message
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(-1)
    last_timestamp: int = int64(-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(-1)


@message
class PartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable=0)
    active_producers: list[ProducerState] = array(ProducerState)


@message
class TopicResponse:
    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message
class Response:
    API_KEY: ClassVar = 61
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
