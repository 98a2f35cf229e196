"""FindCoordinator (api key 10), versions 0 to 6:
which broker looks after a group or a transactional id.

v1   key_type; throttle_time_ms, error_message in the response
v2   throttled responses are sent at once; the client waits
v3   flexible encoding
v4   several keys in one request
v5   TRANSACTION_ABORTABLE may be returned
v6   key type 2 for share groups
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 10
    VERSIONS: ClassVar = range(0, 7)
    FLEXIBLE_SINCE: ClassVar = 3

    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = array(string, since=4)


@message
class Coordinator:
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, ignorable=True)


@message
class Response:
    API_KEY: ClassVar = 10
    VERSIONS: ClassVar = range(0, 7)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable=(1, 3), ignorable=True)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)
