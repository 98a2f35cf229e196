"""ConsumerGroupDescribe (api key 69), versions 0 to 1:
state and members of consumer groups (KIP-848).

v1   member_type in the response
"""

from typing import ClassVar

from ottla.protocol.schema import array, boolean, int8, int16, int32, message, string, struct, uuid


@message
class Request:
    API_KEY: ClassVar = 69
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@message
class TopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message
class Member:
    member_id: str = string()
    instance_id: str | None = string(None, nullable=0)
    rack_id: str | None = string(None, nullable=0)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(None, nullable=0)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    member_type: int = int8(-1, since=1, ignorable=True)


@message
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(None, nullable=0)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(-(1 << 31))


@message
class Response:
    API_KEY: ClassVar = 69
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
