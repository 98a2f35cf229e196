"""DeleteGroups (api key 42), versions 0 to 2: groups to remove.

v1   throttled responses are sent at once; the client waits
v2   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 42
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    groups_names: list[str] = array(string)


@message
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()


@message
class Response:
    API_KEY: ClassVar = 42
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
