"""What classic consumers write about themselves is read and written as they do it."""

import pytest

from ottla.groups.mixed.embedded_protocol import (
    CustomAssignment,
    assigned_by,
    encoded_assignment,
    owned_by,
    subscription_of,
)
from ottla.model.errors import ProtocolError
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_versioned,
    encode_versioned,
)
from tests.unit.groups.consuming import FixedTopics, topic_id
from tests.unit.groups.driving import subscription

TOPICS = FixedTopics(t=4)


def test_what_a_member_owns_is_told_by_topic_id() -> None:
    owned = [SubscriptionTopicPartition("t", [1, 2]), SubscriptionTopicPartition("gone", [0])]
    said = encode_versioned(ConsumerProtocolSubscription(["t"], None, owned), 1)
    (one,) = owned_by(subscription_of(said), TOPICS)
    assert (one.topic_id, one.partitions) == (topic_id("t"), [1, 2])
    with pytest.raises(ProtocolError):
        subscription_of(b"")


def test_an_assignment_is_read_without_topics_that_are_gone() -> None:
    parts = [AssignmentTopicPartition("t", [0, 3]), AssignmentTopicPartition("gone", [1])]
    given = encode_versioned(ConsumerProtocolAssignment(parts), 0)
    assert assigned_by(given, TOPICS) == {topic_id("t"): [0, 3]}
    assert assigned_by(b"", TOPICS) == {}
    with pytest.raises(CustomAssignment):
        assigned_by(encode_versioned(ConsumerProtocolAssignment(parts, b"mine"), 0), TOPICS)
    with pytest.raises(ProtocolError):
        assigned_by(b"all", TOPICS)


def test_an_assignment_is_written_in_the_members_own_version() -> None:
    owned = {topic_id("t"): {2: 7, 0: 7}, topic_id("u"): {0: 1}}
    data = encoded_assignment(owned, subscription("t"), TOPICS)
    assignment, version = decode_versioned(ConsumerProtocolAssignment, data)
    assert version == 1
    assert assignment.assigned_partitions == [AssignmentTopicPartition("t", [0, 2])]
    assert decode_versioned(ConsumerProtocolAssignment, encoded_assignment({}, b"", TOPICS))[1] == 0
