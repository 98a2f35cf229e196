"""Consumer groups beside classic ones: listed, described, deleted, committed to, expired."""

import pytest

from ottla.groups.administration import ListGroups
from ottla.groups.coordinator import (
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    ExpireOffsets,
)
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    list_groups,
    offset_delete,
    offset_fetch,
)
from tests.unit.groups.consuming import Consumer, ConsumerWorld, settle, topic_id
from tests.unit.groups.driving import GROUP, committed, committing, leaving, stable
from tests.unit.groups.offsets.test_offsets import RETENTION_MS, part_code


def test_a_group_survives_a_reload() -> None:
    world = ConsumerWorld(t=4)
    both = Consumer(world, "a"), Consumer(world, "b")
    settle(*both)
    before = world.machine.consumers.by_id[GROUP]
    world.reload()
    after = world.machine.consumers.by_id[GROUP]
    assert (after.members, after.targets) == (before.members, before.targets)
    assert (after.epoch, after.target_epoch, after.owners) == (
        before.epoch,
        before.target_epoch,
        before.owners,
    )
    records = len(world.log)
    settle(*both)
    assert len(world.log) == records, "nothing has changed"


def test_it_is_listed_and_described() -> None:
    world = ConsumerWorld(t=2)
    settle(Consumer(world, "a"))
    (listed,) = world.reply(ListGroups.of(list_groups.Request(["stable"], ["consumer"])))
    assert (listed.group_id, listed.group_type, listed.protocol_type) == (
        GROUP,
        "consumer",
        "consumer",
    )
    described = world.reply(DescribeConsumerGroup(GROUP), 1)
    assert (described.group_state, described.group_epoch) == ("Stable", 1)
    assert (described.assignment_epoch, described.assignor_name) == (1, "uniform")
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.member_type) == ("a", 1, 1)
    (part,) = member.assignment.topic_partitions
    assert (part.topic_id, part.topic_name, part.partitions) == (topic_id("t"), "t", [0, 1])
    assert member.target_assignment == member.assignment


def test_each_kind_is_unknown_to_the_other() -> None:
    world = ConsumerWorld()
    settle(Consumer(world, "a"))
    assert world.code(DescribeGroup(GROUP), 6) == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.code(DescribeConsumerGroup("x"), 1) == ErrorCode.GROUP_ID_NOT_FOUND
    other = ConsumerWorld()
    stable(other)
    assert other.code(DescribeConsumerGroup(GROUP), 1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert other.code(Consumer(other, "a").request(member_epoch=5), 1) == (
        ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_an_empty_group_gives_way_to_the_other_kind_and_keeps_its_offsets() -> None:
    world = ConsumerWorld()
    consumer = Consumer(world, "a")
    settle(consumer)
    consumer.leave()
    assert part_code(world, committing(5)) == 0
    stable(world)
    assert GROUP not in world.machine.consumers.by_id
    world.reload()
    assert world.machine.groups[GROUP].members
    assert committed(world) == 5
    for member in list(world.machine.groups[GROUP].members):
        world.ask(leaving(member))
    settle(consumer)
    world.reload()
    assert GROUP not in world.machine.groups
    assert committed(world) == 5


def test_only_members_of_their_epoch_commit() -> None:
    world = ConsumerWorld()
    consumer = Consumer(world, "a")
    settle(consumer)
    assert part_code(world, committing(5, consumer.epoch, "a"), 9) == 0
    refusals = [
        (committing(6, consumer.epoch + 1, "a"), 9, ErrorCode.STALE_MEMBER_EPOCH),
        (committing(6, -1, ""), 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (committing(6, 1, "x"), 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (committing(6, consumer.epoch, "a"), 8, ErrorCode.UNSUPPORTED_VERSION),
    ]
    for request, version, code in refusals:
        assert part_code(world, request, version) == code
    assert committed(world) == 5


def test_what_a_member_still_has_it_may_commit_with_its_last_epoch() -> None:
    world = ConsumerWorld(t=2)
    first, second = Consumer(world, "a"), Consumer(world, "b")
    settle(first)
    old = first.epoch
    settle(first, second)
    assert first.epoch > old
    kept = next(iter(first.owned))[1]
    for index in (0, 1):
        request = committing(5, old, "a")
        request.topics[0].topic_id = topic_id("t")
        request.topics[0].partitions[0].partition_index = index
        code = ErrorCode.NONE if index == kept else ErrorCode.STALE_MEMBER_EPOCH
        assert part_code(world, request, 9) == code


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [(None, -1, 0), ("a", 1, 0), ("a", 9, ErrorCode.STALE_MEMBER_EPOCH),
     ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID)],
)  # fmt: skip
def test_offsets_are_fetched_by_members_of_their_epoch(
    member: str | None, epoch: int, code: int
) -> None:
    world = ConsumerWorld()
    settle(Consumer(world, "a"))
    reply = world.reply(offset_fetch.OffsetFetchRequestGroup(GROUP, member, epoch, None))
    assert (reply.code if isinstance(reply, Refusal) else 0) == code


def test_it_is_deleted_once_empty() -> None:
    world = ConsumerWorld()
    consumer = Consumer(world, "a")
    settle(consumer)
    world.ask(committing(5, 1, "a"), 9)
    assert world.code(DeleteGroup(GROUP)) == ErrorCode.NON_EMPTY_GROUP
    consumer.leave()
    assert world.code(DeleteGroup(GROUP)) == 0
    world.reload()
    assert GROUP not in world.machine.consumers.by_id
    assert GROUP not in world.machine.groups
    assert committed(world) == -1


def test_offsets_expire_only_of_topics_that_nobody_reads() -> None:
    world = ConsumerWorld()
    consumer = Consumer(world, "a")
    settle(consumer)
    world.ask(committing(5, 1, "a"), 9)
    world.ask(committing(5, 1, "a", topic="old"), 9)
    world.clock.now_ms += RETENTION_MS
    world.ask(ExpireOffsets())
    assert (committed(world), committed(world, "old")) == (5, -1)
    consumer.leave()
    world.ask(ExpireOffsets())
    assert committed(world) == -1
    assert GROUP not in world.machine.consumers.by_id


def test_offsets_of_topics_that_are_read_are_not_deleted() -> None:
    world = ConsumerWorld()
    settle(Consumer(world, "a"))
    parts = [offset_delete.OffsetDeleteRequestPartition(0)]
    topics = [offset_delete.OffsetDeleteRequestTopic(name, parts) for name in ("t", "old")]
    reply = world.reply(offset_delete.Request(GROUP, topics))
    codes = [topic.partitions[0].error_code for topic in reply.topics]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]


def test_who_joins_a_new_group_without_topics_is_in_all_the_same() -> None:
    world = ConsumerWorld()
    joining = consumer_group_heartbeat.Request(
        *(GROUP, "a", 0),
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[],
        topic_partitions=[],
    )
    assert world.reply(joining).member_epoch == 1
