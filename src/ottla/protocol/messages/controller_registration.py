"""ControllerRegistration (api key 70), version 0:
a controller that starts makes itself known to the active one."""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, message, string, uint16, uuid


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
    API_KEY: ClassVar = 70
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


@message
class Response:
    API_KEY: ClassVar = 70
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
