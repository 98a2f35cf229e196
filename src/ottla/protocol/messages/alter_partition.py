"""AlterPartition (api key 56), versions 2 to 3: a leader proposes another ISR to the controller.

v2   topics by id
v3   new_isr_with_epochs instead of new_isr
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, int64, message, uuid


@message
class BrokerState:
    broker_id: int = int32()
    broker_epoch: int = int64(-1)


@message
class RequestPartitionData:
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, until=2)
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, since=3)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@message
class RequestTopicData:
    topic_id: bytes = uuid(ignorable=True)
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message
class Request:
    API_KEY: ClassVar = 56
    VERSIONS: ClassVar = range(2, 4)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64(-1)
    topics: list[RequestTopicData] = array(RequestTopicData)


@message
class ResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8(ignorable=True)
    partition_epoch: int = int32()


@message
class ResponseTopicData:
    topic_id: bytes = uuid(ignorable=True)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@message
class Response:
    API_KEY: ClassVar = 56
    VERSIONS: ClassVar = range(2, 4)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[ResponseTopicData] = array(ResponseTopicData)
