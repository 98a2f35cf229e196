"""DescribeLogDirs (api key 35), versions 1 to 5: log directories and their replicas.

v1   throttled responses are sent at once; the client waits
v2   flexible encoding
v3   error_code in the response
v4   total_bytes, usable_bytes in the response
v5   is_cordoned in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, int64, message, string


@message
class DescribableLogDirTopic:
    topic: str = string()
    partitions: list[int] = array(int32)


@message
class Request:
    API_KEY: ClassVar = 35
    VERSIONS: ClassVar = range(1, 6)
    FLEXIBLE_SINCE: ClassVar = 2

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable=0)


@message
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@message
class DescribeLogDirsTopic:
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@message
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(-1, since=4, ignorable=True)
    usable_bytes: int = int64(-1, since=4, ignorable=True)
    is_cordoned: bool = boolean(since=5, ignorable=True)


@message
class Response:
    API_KEY: ClassVar = 35
    VERSIONS: ClassVar = range(1, 6)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
