"""AssignReplicasToDirs (api key 73), version 0:
a broker reports the directories of its replicas."""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, uuid


@message
class RequestPartitionData:
    partition_index: int = int32()


@message
class RequestTopicData:
    topic_id: bytes = uuid()
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message
class RequestDirectoryData:
    id: bytes = uuid()
    topics: list[RequestTopicData] = array(RequestTopicData)


@message
class Request:
    API_KEY: ClassVar = 73
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64(-1)
    directories: list[RequestDirectoryData] = array(RequestDirectoryData)


@message
class ResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()


@message
class ResponseTopicData:
    topic_id: bytes = uuid()
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@message
class ResponseDirectoryData:
    id: bytes = uuid()
    topics: list[ResponseTopicData] = array(ResponseTopicData)


@message
class Response:
    API_KEY: ClassVar = 73
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[ResponseDirectoryData] = array(ResponseDirectoryData)
