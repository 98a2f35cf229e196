"""DescribeConfigs (api key 32), versions 1 to 4:
configs with their sources, defaults and documentation.

v1   include_synonyms; config_source in the response
v2   throttled responses are sent at once; the client waits
v3   include_documentation; config_type, documentation in the response
v4   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string


@message
class DescribeConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable=0)


@message
class Request:
    API_KEY: ClassVar = 32
    VERSIONS: ClassVar = range(1, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


@message
class DescribeConfigsSynonym:
    name: str = string()
    value: str | None = string(nullable=0)
    source: int = int8()


@message
class DescribeConfigsResourceResult:
    name: str = string()
    value: str | None = string(nullable=0)
    read_only: bool = boolean()
    config_source: int = int8(-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, ignorable=True)
    config_type: int = int8(since=3, ignorable=True)
    documentation: str | None = string(since=3, nullable=0, ignorable=True)


@message
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message
class Response:
    API_KEY: ClassVar = 32
    VERSIONS: ClassVar = range(1, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
