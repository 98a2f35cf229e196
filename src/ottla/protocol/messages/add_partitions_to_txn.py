"""AddPartitionsToTxn (api key 24), versions 0 to 5: partitions that a transaction will write.

v1   throttled responses are sent at once; the client waits
v2   PRODUCER_FENCED may be returned
v3   flexible encoding
v4   for brokers: several transactions at once, verify_only; clients stay at v3
v5   TRANSACTION_ABORTABLE may be returned
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, string


@message
class AddPartitionsToTxnTopic:
    name: str = string()
    partitions: list[int] = array(int32)


@message
class AddPartitionsToTxnTransaction:
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    verify_only: bool = boolean()
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic)


@message
class Request:
    API_KEY: ClassVar = 24
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    transactions: list[AddPartitionsToTxnTransaction] = array(
        AddPartitionsToTxnTransaction, since=4
    )
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)


@message
class AddPartitionsToTxnPartitionResult:
    partition_index: int = int32()
    partition_error_code: int = int16()


@message
class AddPartitionsToTxnTopicResult:
    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult
    )


@message
class AddPartitionsToTxnResult:
    transactional_id: str = string()
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult)


@message
class Response:
    API_KEY: ClassVar = 24
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: int = int32()
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(
        AddPartitionsToTxnResult, since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, until=3
    )
