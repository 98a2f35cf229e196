"""SaslAuthenticate (api key 36), versions 0 to 2: one step of a SASL exchange.

v1   session_lifetime_ms in the response
v2   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import binary, int16, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 36
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    auth_bytes: bytes = binary()


@message
class Response:
    API_KEY: ClassVar = 36
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64(since=1, ignorable=True)
