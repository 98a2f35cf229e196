"""A consumer group's durable state: who owns what, in which epoch."""

import pytest

from ottla.groups.consumer.group import ConsumerGroup, MemberState
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import consumer_group_records as records

T = b"t" * 16


def metadata(**fields: object) -> records.ConsumerGroupMemberMetadataValue:
    value = records.ConsumerGroupMemberMetadataValue(None, None, subscribed_topic_names=["t"])
    for name, given in fields.items():
        setattr(value, name, given)
    return value


def assignment(
    epoch: int, *indexes: int, state: int = 0
) -> records.ConsumerGroupCurrentMemberAssignmentValue:
    parts = [records.CurrentTopicPartitions(T, list(indexes), [epoch] * len(indexes))]
    return records.ConsumerGroupCurrentMemberAssignmentValue(epoch, epoch - 1, state, parts)


def test_partitions_have_an_owner_until_it_gives_them_up_or_is_gone() -> None:
    group = ConsumerGroup("g")
    group.restore_member("a", metadata())
    group.restore_assignment("a", assignment(1, 0, 1))
    assert group.owners == {(T, 0): "a", (T, 1): "a"}
    group.restore_assignment("a", assignment(2, 1))
    assert group.owners == {(T, 1): "a"}
    group.restore_member("a", None)
    assert group.owners == {}


def test_the_state_follows_the_epochs() -> None:
    group = ConsumerGroup("g")
    assert group.state == "Empty"
    group.restore_member("a", metadata())
    group.epoch = 1
    assert group.state == "Assigning"
    group.target_epoch = 1
    assert group.state == "Reconciling"
    group.restore_assignment("a", assignment(1, 0, state=MemberState.UNREVOKED_PARTITIONS))
    assert group.state == "Reconciling"
    group.restore_assignment("a", assignment(1, 0))
    assert group.state == "Stable"


def test_an_instance_belongs_to_its_last_member() -> None:
    group = ConsumerGroup("g")
    group.restore_member("a", metadata(instance_id="one"))
    group.restore_member("b", metadata(instance_id="one"))
    group.restore_member("a", None)
    assert group.static == {"one": "b"}


def test_topics_by_expression_count_too() -> None:
    group = ConsumerGroup("g")
    group.restore_member("a", metadata(subscribed_topic_regex="u.*"))
    group.expressions["u.*"] = frozenset({"u1"})
    assert group.subscribed_topics() == {"t", "u1"}


def test_an_assignment_of_an_older_kafka_has_no_epochs() -> None:
    group = ConsumerGroup("g")
    group.restore_member("a", metadata())
    value = assignment(3, 0)
    value.assigned_partitions[0].assignment_epochs = []
    group.restore_assignment("a", value)
    assert group.members["a"].assigned == {T: {0: 3}}
    group.restore_assignment("a", None)
    assert group.members["a"].assigned == {}


def test_who_is_not_a_member_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        ConsumerGroup("g").member("x")
    assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID
