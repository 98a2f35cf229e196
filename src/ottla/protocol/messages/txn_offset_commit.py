"""TxnOffsetCommit (api key 28), versions 0 to 5: offsets of a transaction.

v1   throttled responses are sent at once; the client waits
v2   committed_leader_epoch
v3   flexible encoding; generation_id, member_id, group_instance_id fence zombies
v4   TRANSACTION_ABORTABLE may be returned
v5   offsets join the transaction by being committed
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string


@message
class TxnOffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(-1, since=2, ignorable=True)
    committed_metadata: str | None = string(nullable=0)


@message
class TxnOffsetCommitRequestTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@message
class Request:
    API_KEY: ClassVar = 28
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(-1, since=3)
    member_id: str = string(since=3)
    group_instance_id: str | None = string(None, since=3, nullable=3)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


@message
class TxnOffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@message
class TxnOffsetCommitResponseTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@message
class Response:
    API_KEY: ClassVar = 28
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
