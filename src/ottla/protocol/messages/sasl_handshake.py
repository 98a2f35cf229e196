"""SaslHandshake (api key 17), versions 0 to 1: choice of the SASL mechanism.

v1   tokens follow in SaslAuthenticate requests, no longer bare
"""

from typing import ClassVar

from ottla.protocol.schema import NEVER, array, int16, message, string


@message
class Request:
    API_KEY: ClassVar = 17
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = NEVER

    mechanism: str = string()


@message
class Response:
    API_KEY: ClassVar = 17
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = NEVER

    error_code: int = int16()
    mechanisms: list[str] = array(string)
