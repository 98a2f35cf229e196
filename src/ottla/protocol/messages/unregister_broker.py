"""UnregisterBroker (api key 64), version 0: remove a broker from the cluster."""

from typing import ClassVar

from ottla.protocol.schema import int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 64
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()


@message
class Response:
    API_KEY: ClassVar = 64
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
