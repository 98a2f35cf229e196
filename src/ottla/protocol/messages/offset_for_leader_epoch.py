"""OffsetForLeaderEpoch (api key 23), versions 2 to 4: the end offset of a leader epoch.

v2   current_leader_epoch; leader_epoch in the response
v3   replica_id
v4   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string


@message
class OffsetForLeaderPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(-1, ignorable=True)
    leader_epoch: int = int32()


@message
class OffsetForLeaderTopic:
    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message
class Request:
    API_KEY: ClassVar = 23
    VERSIONS: ClassVar = range(2, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    replica_id: int = int32(-2, since=3, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


@message
class EpochEndOffset:
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(-1, ignorable=True)
    end_offset: int = int64(-1)


@message
class OffsetForLeaderTopicResult:
    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@message
class Response:
    API_KEY: ClassVar = 23
    VERSIONS: ClassVar = range(2, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
