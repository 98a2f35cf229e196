"""AlterClientQuotas (api key 49), versions 0 to 1: set and remove quotas.

v1   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, float64, int16, int32, message, string


@message
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable=0)


@message
class OpData:
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@message
class RequestEntryData:
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@message
class Request:
    API_KEY: ClassVar = 49
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    entries: list[RequestEntryData] = array(RequestEntryData)
    validate_only: bool = boolean()


@message
class ResponseEntryData:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    entity: list[EntityData] = array(EntityData)


@message
class Response:
    API_KEY: ClassVar = 49
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    throttle_time_ms: int = int32()
    entries: list[ResponseEntryData] = array(ResponseEntryData)
