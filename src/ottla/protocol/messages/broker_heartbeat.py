"""BrokerHeartbeat (api key 63), versions 0 to 2:
a broker is alive, wants to be unfenced or to stop.

v1   offline_log_dirs
v2   cordoned_log_dirs
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, uuid


@message
class Request:
    API_KEY: ClassVar = 63
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64(-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = array(uuid, since=1, tag=0)
    cordoned_log_dirs: list[bytes] | None = array(uuid, default=None, since=2, nullable=2, tag=1)


@message
class Response:
    API_KEY: ClassVar = 63
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(True)
    should_shut_down: bool = boolean()
