"""Envelope (api key 58), version 0:
a request that a broker forwards to the controller for a client."""

from typing import ClassVar

from ottla.protocol.schema import binary, int16, message


@message
class Request:
    API_KEY: ClassVar = 58
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable=0)
    client_host_address: bytes = binary()


@message
class Response:
    API_KEY: ClassVar = 58
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    response_data: bytes | None = binary(None, nullable=0)
    error_code: int = int16()
