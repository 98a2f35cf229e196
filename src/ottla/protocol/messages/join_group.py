"""JoinGroup (api key 11), versions 0 to 9: become a member of a classic group.

v1   rebalance_timeout_ms
v2   throttle_time_ms in the response
v3   throttled responses are sent at once; the client waits
v4   a member without an id gets one and joins again with it
v5   group_instance_id; group_instance_id in the response
v6   flexible encoding
v7   protocol_type in the response; protocol_name may be null
v8   reason
v9   skip_assignment in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, binary, boolean, int16, int32, message, string


@message
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = binary()


@message
class Request:
    API_KEY: ClassVar = 11
    VERSIONS: ClassVar = range(0, 10)
    FLEXIBLE_SINCE: ClassVar = 6

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(-1, since=1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(None, since=5, nullable=5)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(None, since=8, nullable=8, ignorable=True)


@message
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string(None, since=5, nullable=5, ignorable=True)
    metadata: bytes = binary()


@message
class Response:
    API_KEY: ClassVar = 11
    VERSIONS: ClassVar = range(0, 10)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: int = int32(since=2, ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(-1)
    protocol_type: str | None = string(None, since=7, nullable=7, ignorable=True)
    protocol_name: str | None = string(nullable=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
