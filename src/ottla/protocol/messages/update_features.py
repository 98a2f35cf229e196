"""UpdateFeatures (api key 57), versions 0 to 2: raise or lower finalized features.

v1   validate_only; upgrade_type instead of allow_downgrade
v2   one error for the whole request, no results in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string


@message
class FeatureUpdateKey:
    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean(until=0)
    upgrade_type: int = int8(1, since=1)


@message
class Request:
    API_KEY: ClassVar = 57
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    timeout_ms: int = int32(60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1)


@message
class UpdatableFeatureResult:
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class Response:
    API_KEY: ClassVar = 57
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1, ignorable=True)
