"""AddOffsetsToTxn (api key 25), versions 0 to 4: a group whose offsets a transaction will commit.

v1   throttled responses are sent at once; the client waits
v2   PRODUCER_FENCED may be returned
v3   flexible encoding
v4   TRANSACTION_ABORTABLE may be returned
"""

from typing import ClassVar

from ottla.protocol.schema import int16, int32, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 25
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 3

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message
class Response:
    API_KEY: ClassVar = 25
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: int = int32()
    error_code: int = int16()
