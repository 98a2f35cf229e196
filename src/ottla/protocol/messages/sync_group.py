"""SyncGroup (api key 14), versions 0 to 5:
the leader's assignment for each member of a classic group.

v1   throttle_time_ms in the response
v2   throttled responses are sent at once; the client waits
v3   group_instance_id
v4   flexible encoding
v5   protocol_type and protocol_name, in the response too
"""

from typing import ClassVar

from ottla.protocol.schema import array, binary, int16, int32, message, string


@message
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = binary()


@message
class Request:
    API_KEY: ClassVar = 14
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 4

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(None, since=3, nullable=3)
    protocol_type: str | None = string(None, since=5, nullable=5, ignorable=True)
    protocol_name: str | None = string(None, since=5, nullable=5, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message
class Response:
    API_KEY: ClassVar = 14
    VERSIONS: ClassVar = range(0, 6)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(None, since=5, nullable=5, ignorable=True)
    protocol_name: str | None = string(None, since=5, nullable=5, ignorable=True)
    assignment: bytes = binary()
