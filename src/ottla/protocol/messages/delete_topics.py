"""DeleteTopics (api key 20), versions 1 to 6: topics to remove.

v1   the oldest that Kafka still supports
v2   throttled responses are sent at once; the client waits
v3   TOPIC_DELETION_DISABLED may be returned
v4   flexible encoding
v5   error_message in the response
v6   topics, by name or by id, instead of topic_names
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string, uuid


@message
class DeleteTopicState:
    name: str | None = string(None, nullable=0)
    topic_id: bytes = uuid()


@message
class Request:
    API_KEY: ClassVar = 20
    VERSIONS: ClassVar = range(1, 7)
    FLEXIBLE_SINCE: ClassVar = 4

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array(string, until=5, ignorable=True)
    timeout_ms: int = int32()


@message
class DeletableTopicResult:
    name: str | None = string(nullable=6)
    topic_id: bytes = uuid(since=6, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(None, since=5, nullable=5, ignorable=True)


@message
class Response:
    API_KEY: ClassVar = 20
    VERSIONS: ClassVar = range(1, 7)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: int = int32(ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
