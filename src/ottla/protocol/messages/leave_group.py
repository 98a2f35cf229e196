"""LeaveGroup (api key 13), versions 0 to 5: members leave a classic group.

v1   throttle_time_ms in the response
v2   throttled responses are sent at once; the client waits
v3   several members leave at once
v4   flexible encoding
v5   reason
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string


@message
class MemberIdentity:
    member_id: str = string()
    group_instance_id: str | None = string(None, nullable=0)
    reason: str | None = string(None, since=5, nullable=5, ignorable=True)


@message
class Request:
    API_KEY: ClassVar = 13
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 4

    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)


@message
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(nullable=0)
    error_code: int = int16()


@message
class Response:
    API_KEY: ClassVar = 13
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)
