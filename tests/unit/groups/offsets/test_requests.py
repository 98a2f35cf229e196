"""Who may commit and fetch in a group with members of both kinds."""

import pytest

from ottla.groups.coordinator import TopicsDeleted
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import TopicPartition
from ottla.protocol.messages import offset_commit, offset_fetch
from tests.unit.groups.consuming import Consumer, ConsumerWorld, topic_id
from tests.unit.groups.driving import GROUP, committed, committing
from tests.unit.groups.mixing import ClassicConsumer, settle_all
from tests.unit.groups.offsets.test_offsets import part_code


@pytest.fixture
def mixed() -> tuple[ConsumerWorld, ClassicConsumer, Consumer]:
    world = ConsumerWorld(t=2)
    old, new = ClassicConsumer(world), Consumer(world, "new")
    settle_all(world, old)
    settle_all(world, old, new)
    return world, old, new


def test_each_kind_commits_and_is_refused_in_its_own_words(
    mixed: tuple[ConsumerWorld, ClassicConsumer, Consumer],
) -> None:
    world, old, new = mixed
    assert part_code(world, committing(5, old.generation, old.id), 2) == 0
    assert part_code(world, committing(6, new.epoch, "new"), 9) == 0
    assert part_code(world, committing(6, new.epoch, "new"), 8) == ErrorCode.UNSUPPORTED_VERSION
    stale, illegal = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION
    for epoch in (1, 99):
        assert part_code(world, committing(7, epoch, old.id), 8) == illegal
        assert part_code(world, committing(7, epoch, "new"), 9) == stale
    assert part_code(world, committing(7), 9) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(world) == 6


def test_a_member_may_commit_late_what_it_has_had_since(
    mixed: tuple[ConsumerWorld, ClassicConsumer, Consumer],
) -> None:
    world, old, _ = mixed
    group = world.machine.consumers.by_id[GROUP]
    ((index, since),) = group.members[old.id].assigned[topic_id("t")].items()
    group.members[old.id].epoch += 3
    for partition, code in ((index, 0), (1 - index, ErrorCode.ILLEGAL_GENERATION)):
        request = committing(5, since, old.id)
        request.topics[0].topic_id = topic_id("t")
        request.topics[0].partitions[0].partition_index = partition
        assert part_code(world, request, 8) == code


def test_offsets_are_fetched_by_members_of_their_epoch(
    mixed: tuple[ConsumerWorld, ClassicConsumer, Consumer],
) -> None:
    world, old, new = mixed

    def code(member: str | None, epoch: int) -> int:
        reply = world.reply(offset_fetch.OffsetFetchRequestGroup(GROUP, member, epoch, None))
        return int(reply.code) if isinstance(reply, Refusal) else 0

    assert (code(old.id, old.generation), code("new", new.epoch), code(None, -1)) == (0, 0, 0)
    assert code(old.id, 99) == ErrorCode.ILLEGAL_GENERATION
    assert code("new", 99) == ErrorCode.STALE_MEMBER_EPOCH
    assert code("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_a_topic_that_was_created_again_are_kept() -> None:
    world = ConsumerWorld(t=1)
    for partition, id_ in ((0, bytes(16)), (1, topic_id("t"))):
        part = offset_commit.OffsetCommitRequestPartition(partition, 5, -1, "")
        topic = offset_commit.OffsetCommitRequestTopic("t", id_, [part])
        world.reply(offset_commit.Request(GROUP, topics=[topic]))
    world.ask(TopicsDeleted(frozenset({"t"})))
    assert list(world.machine.offsets[GROUP]) == [TopicPartition("t", 1)]
