"""DescribeTransactions (api key 65), version 0: states of transactions."""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 65
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    transactional_ids: list[str] = array(string)


@message
class TopicData:
    topic: str = string()
    partitions: list[int] = array(int32)


@message
class TransactionState:
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


@message
class Response:
    API_KEY: ClassVar = 65
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
