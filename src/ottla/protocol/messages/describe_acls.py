"""DescribeAcls (api key 29), versions 1 to 3: ACLs that match a filter.

v1   prefixed patterns
v2   flexible encoding
v3   resource type USER
"""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 29
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable=0)
    pattern_type_filter: int = int8(3)
    principal_filter: str | None = string(nullable=0)
    host_filter: str | None = string(nullable=0)
    operation: int = int8()
    permission_type: int = int8()


@message
class AclDescription:
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class DescribeAclsResource:
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(3)
    acls: list[AclDescription] = array(AclDescription)


@message
class Response:
    API_KEY: ClassVar = 29
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
