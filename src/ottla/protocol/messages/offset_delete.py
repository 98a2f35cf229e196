"""OffsetDelete (api key 47), version 0: delete offsets of a group."""

from typing import ClassVar

from ottla.protocol.schema import NEVER, array, int16, int32, message, string


@message
class OffsetDeleteRequestPartition:
    partition_index: int = int32()


@message
class OffsetDeleteRequestTopic:
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message
class Request:
    API_KEY: ClassVar = 47
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@message
class OffsetDeleteResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@message
class OffsetDeleteResponseTopic:
    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@message
class Response:
    API_KEY: ClassVar = 47
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
