"""ListOffsets (api key 2), versions 1 to 11: the offset at a time, or at either end of a log.

v1   one offset per partition
v2   isolation_level; throttle_time_ms in the response
v3   throttled responses are sent at once; the client waits
v4   current_leader_epoch; leader_epoch in the response
v5   OFFSET_NOT_AVAILABLE may be returned
v6   flexible encoding
v7   timestamp -3: the record with the highest timestamp
v8   timestamp -4: the earliest offset on the local disk
v9   timestamp -5: the last offset in the tier
v10  timeout_ms, for lookups in the tier
v11  timestamp -6: the earliest offset not yet in the tier
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, int64, message, string


@message
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32(-1, since=4, ignorable=True)
    timestamp: int = int64()


@message
class ListOffsetsTopic:
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message
class Request:
    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(1, 12)
    FLEXIBLE_SINCE: ClassVar = 6

    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10, ignorable=True)


@message
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(-1)
    offset: int = int64(-1)
    leader_epoch: int = int32(-1, since=4)


@message
class ListOffsetsTopicResponse:
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message
class Response:
    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(1, 12)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: int = int32(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
