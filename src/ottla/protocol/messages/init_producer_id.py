"""InitProducerId (api key 22), versions 0 to 6: an id and an epoch for an idempotent producer.

v1   throttled responses are sent at once; the client waits
v2   flexible encoding
v3   producer_id, producer_epoch: a producer bumps its own epoch
v4   PRODUCER_FENCED may be returned
v5   TRANSACTION_ABORTABLE may be returned
v6   two-phase commit, not stable yet: brokers advertise v5
"""

from typing import ClassVar

from ottla.protocol.schema import boolean, int16, int32, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 22
    VERSIONS: ClassVar = range(0, 7)
    FLEXIBLE_SINCE: ClassVar = 2

    transactional_id: str | None = string(nullable=0)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(-1, since=3)
    producer_epoch: int = int16(-1, since=3)
    enable2_pc: bool = boolean(since=6)
    keep_prepared_txn: bool = boolean(since=6)


@message
class Response:
    API_KEY: ClassVar = 22
    VERSIONS: ClassVar = range(0, 7)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(-1, since=6)
    ongoing_txn_producer_epoch: int = int16(-1, since=6)
