"""WriteTxnMarkers (api key 27), versions 1 to 2:
a coordinator has the ends of transactions written into logs.

v1   the oldest that Kafka still supports
v2   transaction_version
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, int64, message, string


@message
class WritableTxnMarkerTopic:
    name: str = string()
    partition_indexes: list[int] = array(int32)


@message
class WritableTxnMarker:
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(since=2, ignorable=True)


@message
class Request:
    API_KEY: ClassVar = 27
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 1

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@message
class WritableTxnMarkerPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@message
class WritableTxnMarkerTopicResult:
    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@message
class WritableTxnMarkerResult:
    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@message
class Response:
    API_KEY: ClassVar = 27
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 1

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
