"""ApiVersions (api key 18), versions 0 to 4: the APIs and versions that a broker supports.

v1   throttle_time_ms in the response
v2   throttled responses are sent at once; the client waits
v3   flexible encoding; the client names its software; features in the response
v4   a supported feature may start at level 0
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 18
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 3

    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)


@message
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@message
class SupportedFeatureKey:
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


@message
class FinalizedFeatureKey:
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


@message
class Response:
    API_KEY: ClassVar = 18
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 3

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, since=3, tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64(-1, since=3, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean(since=3, tag=3, ignorable=True)
