"""DescribeCluster (api key 60), versions 0 to 2: the cluster's id, brokers and controller.

v1   endpoint_type, in the response too
v2   include_fenced_brokers; is_fenced in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string


@message
class Request:
    API_KEY: ClassVar = 60
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(1, since=1)
    include_fenced_brokers: bool = boolean(since=2)


@message
class DescribeClusterBroker:
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(None, nullable=0)
    is_fenced: bool = boolean(since=2)


@message
class Response:
    API_KEY: ClassVar = 60
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable=0)
    endpoint_type: int = int8(1, since=1)
    cluster_id: str = string()
    controller_id: int = int32(-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(-(1 << 31))
