"""AlterConfigs (api key 33), versions 0 to 2: replace all dynamic configs of a resource.

v1   throttled responses are sent at once; the client waits
v2   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string


@message
class AlterableConfig:
    name: str = string()
    value: str | None = string(nullable=0)


@message
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message
class Request:
    API_KEY: ClassVar = 33
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resource_type: int = int8()
    resource_name: str = string()


@message
class Response:
    API_KEY: ClassVar = 33
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
