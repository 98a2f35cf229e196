"""AddRaftVoter (api key 80), versions 0 to 1: add a voter to the quorum.

v1   ack_when_committed
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, message, string, uint16, uuid


@message
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message
class Request:
    API_KEY: ClassVar = 80
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: str | None = string(nullable=0)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(True, since=1)


@message
class Response:
    API_KEY: ClassVar = 80
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, ignorable=True)
