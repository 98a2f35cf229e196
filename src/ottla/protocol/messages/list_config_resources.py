"""ListConfigResources (api key 74), versions 0 to 1: resources that have configs of their own.

v0   client metrics resources alone
v1   resource_types, and resource_type in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 74
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    resource_types: list[int] = array(int8, since=1)


@message
class ConfigResource:
    resource_name: str = string()
    resource_type: int = int8(16, since=1, ignorable=True)


@message
class Response:
    API_KEY: ClassVar = 74
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
