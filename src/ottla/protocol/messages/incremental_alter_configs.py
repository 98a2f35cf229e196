"""IncrementalAlterConfigs (api key 44), versions 0 to 1:
set, delete, append to or subtract from single configs.

v1   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string


@message
class AlterableConfig:
    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable=0)


@message
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message
class Request:
    API_KEY: ClassVar = 44
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

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
    API_KEY: ClassVar = 44
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
