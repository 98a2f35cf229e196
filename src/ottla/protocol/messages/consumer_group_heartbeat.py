"""ConsumerGroupHeartbeat (api key 68), versions 0 to 1:
join, stay in and leave a consumer group (KIP-848).

v1   subscribed_topic_regex
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string, struct, uuid


@message
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


@message
class Request:
    API_KEY: ClassVar = 68
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(None, nullable=0)
    rack_id: str | None = string(None, nullable=0)
    rebalance_timeout_ms: int = int32(-1)
    subscribed_topic_names: list[str] | None = array(string, default=None, nullable=0)
    subscribed_topic_regex: str | None = string(None, since=1, nullable=1)
    server_assignor: str | None = string(None, nullable=0)
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, default=None, nullable=0
    )


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message
class Response:
    API_KEY: ClassVar = 68
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable=0)
    member_id: str | None = string(None, nullable=0)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, default=None, nullable=0)
