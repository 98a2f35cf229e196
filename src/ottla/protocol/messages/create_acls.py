"""CreateAcls (api key 30), versions 1 to 3: new ACLs.

v1   prefixed patterns
v2   flexible encoding
v3   resource type USER
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, message, string


@message
class AclCreation:
    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class Request:
    API_KEY: ClassVar = 30
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    creations: list[AclCreation] = array(AclCreation)


@message
class AclCreationResult:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class Response:
    API_KEY: ClassVar = 30
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
