"""Heartbeat (api key 12), versions 0 to 4: a member of a classic group is alive.

v1   throttle_time_ms in the response
v2   throttled responses are sent at once; the client waits
v3   group_instance_id
v4   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 12
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(None, since=3, nullable=3)


@message
class Response:
    API_KEY: ClassVar = 12
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
