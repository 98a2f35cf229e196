"""DescribeClientQuotas (api key 48), versions 0 to 1: quotas that match a filter.

v1   flexible encoding
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, float64, int8, int16, int32, message, string


@message
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable=0)


@message
class Request:
    API_KEY: ClassVar = 48
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


@message
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable=0)


@message
class ValueData:
    key: str = string()
    value: float = float64()


@message
class EntryData:
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message
class Response:
    API_KEY: ClassVar = 48
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    entries: list[EntryData] | None = array(EntryData, nullable=0)
