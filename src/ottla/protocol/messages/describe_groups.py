"""DescribeGroups (api key 15), versions 0 to 6: state and members of classic groups.

v1   throttle_time_ms in the response
v2   throttled responses are sent at once; the client waits
v3   include_authorized_operations; authorized_operations in the response
v4   group_instance_id in the response
v5   flexible encoding
v6   error_message in the response; GROUP_ID_NOT_FOUND may be returned
"""

from typing import ClassVar

from ottla.protocol.schema import array, binary, boolean, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 15
    VERSIONS: ClassVar = range(0, 7)
    FLEXIBLE_SINCE: ClassVar = 5

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(since=3)


@message
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string(None, since=4, nullable=4, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@message
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(None, since=6, nullable=6)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(-(1 << 31), since=3)


@message
class Response:
    API_KEY: ClassVar = 15
    VERSIONS: ClassVar = range(0, 7)
    FLEXIBLE_SINCE: ClassVar = 5

    throttle_time_ms: int = int32(since=1, ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
