"""ListGroups (api key 16), versions 0 to 5: the groups that a broker coordinates.

v1   throttle_time_ms in the response
v2   throttled responses are sent at once; the client waits
v3   flexible encoding
v4   states_filter; group_state in the response
v5   types_filter; group_type in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 16
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    states_filter: list[str] = array(string, since=4)
    types_filter: list[str] = array(string, since=5)


@message
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4, ignorable=True)
    group_type: str = string(since=5, ignorable=True)


@message
class Response:
    API_KEY: ClassVar = 16
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
