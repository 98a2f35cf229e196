"""CreatePartitions (api key 37), versions 0 to 3: more partitions for a topic.

v1   throttled responses are sent at once; the client waits
v2   flexible encoding
v3   THROTTLING_QUOTA_EXCEEDED may be returned
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int16, int32, message, string


@message
class CreatePartitionsAssignment:
    broker_ids: list[int] = array(int32)


@message
class CreatePartitionsTopic:
    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable=0
    )


@message
class Request:
    API_KEY: ClassVar = 37
    VERSIONS: ClassVar = range(0, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@message
class CreatePartitionsTopicResult:
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(None, nullable=0)


@message
class Response:
    API_KEY: ClassVar = 37
    VERSIONS: ClassVar = range(0, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
