"""Subscriptions and assignments as classic consumers write them, as the coordinator sees them."""

from collections.abc import Collection, Mapping

from ottla.groups.topics import Topics
from ottla.model.errors import ProtocolError
from ottla.model.types import Uuid
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from ottla.protocol.messages.consumer_group_heartbeat import TopicPartitions


class CustomAssignment(Exception):
    """An assignment with data of the members' own assignor, which nobody else can make."""


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription:
    """ProtocolError if it is none."""
    return decode_versioned(ConsumerProtocolSubscription, metadata)[0]


def owned_by(subscription: ConsumerProtocolSubscription, topics: Topics) -> list[TopicPartitions]:
    """What a member says that it still owns; eager ones gave up all before they joined."""
    return [
        TopicPartitions(facts.id, list(one.partitions))
        for one in subscription.owned_partitions
        if (facts := topics.named(one.topic)) is not None
    ]


def assigned_by(assignment: bytes, topics: Topics) -> dict[Uuid, list[int]]:
    """What the leader gave to a member; ProtocolError if that cannot be told."""
    if not assignment:
        return {}
    decoded = decode_versioned(ConsumerProtocolAssignment, assignment)[0]
    if decoded.user_data:
        raise CustomAssignment
    return {
        facts.id: list(one.partitions)
        for one in decoded.assigned_partitions
        if (facts := topics.named(one.topic)) is not None
    }


def encoded_assignment(
    owned: Mapping[Uuid, Collection[int]], metadata: bytes, topics: Topics
) -> bytes:
    """An assignment in the version that the member's own metadata has."""
    try:
        version = decode_versioned(ConsumerProtocolSubscription, metadata)[1]
    except ProtocolError:
        version = 0
    parts = [
        AssignmentTopicPartition(facts.name, sorted(indexes))
        for topic_id, indexes in owned.items()
        if indexes and (facts := topics.by_id(topic_id)) is not None
    ]
    return encode_versioned(ConsumerProtocolAssignment(parts), version)
