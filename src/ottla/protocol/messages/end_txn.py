"""EndTxn (api key 26), versions 0 to 5: commit or abort.

v1   throttled responses are sent at once; the client waits
v2   PRODUCER_FENCED may be returned
v3   flexible encoding
v4   TRANSACTION_ABORTABLE may be returned
v5   every end raises the epoch: producer_id, producer_epoch in the response
"""

from typing import ClassVar

from ottla.protocol.schema import boolean, int16, int32, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 26
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message
class Response:
    API_KEY: ClassVar = 26
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(-1, since=5, ignorable=True)
    producer_epoch: int = int16(-1, since=5, ignorable=True)
