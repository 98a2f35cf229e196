"""BrokerRegistration (api key 62), versions 0 to 4:
a broker that starts makes itself known to the controller.

v1   is_migrating_zk_broker
v2   log_dirs
v3   previous_broker_epoch
v4   a supported feature may start at level 0
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, string, uint16, uuid


@message
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@message
class Feature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message
class Request:
    API_KEY: ClassVar = 62
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable=0)
    is_migrating_zk_broker: bool = boolean(since=1)
    log_dirs: list[bytes] = array(uuid, since=2, ignorable=True)
    previous_broker_epoch: int = int64(-1, since=3, ignorable=True)


@message
class Response:
    API_KEY: ClassVar = 62
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(-1)
