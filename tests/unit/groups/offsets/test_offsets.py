"""Offsets change only by commits, deletions and expiry, and survive everything else."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.groups.coordinator import DeleteGroup, ExpireOffsets, TopicsDeleted
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.group_records import OffsetCommitKey
from ottla.protocol.messages import offset_commit, offset_delete, offset_fetch
from tests.unit.groups.driving import (
    GROUP,
    World,
    committed,
    committing,
    joining,
    leaving,
    new_id,
    stable,
)

RETENTION_MS = 7 * 24 * 3600 * 1000


def part_code(world: World, request: offset_commit.Request, version: int = 9) -> int:
    reply = world.reply(request, version)
    if isinstance(reply, Refusal):
        return reply.code
    code: int = reply.topics[0].partitions[0].error_code
    return code


def test_an_offset_is_found_again_after_a_reload() -> None:
    world = World()
    assert part_code(world, committing(5, note="here")) == 0
    world.reload()
    asked = offset_fetch.OffsetFetchRequestGroup(GROUP, topics=None)
    (topic,) = world.reply(asked).topics
    (part,) = topic.partitions
    assert (topic.name, part.committed_offset, part.metadata) == ("t", 5, "here")


def test_a_partition_that_is_named_often_is_answered_once() -> None:
    world = World()
    assert part_code(world, committing(5, note="here")) == 0
    topic = offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=[0] * 5)
    asked = offset_fetch.OffsetFetchRequestGroup(GROUP, topics=[topic] * 3)
    (answered,) = world.reply(asked).topics
    assert [(part.partition_index, part.metadata) for part in answered.partitions] == [(0, "here")]


def test_of_a_partition_that_is_committed_often_in_one_request_the_last_is_written() -> None:
    world = World()
    request = committing(5)
    (part,) = request.topics[0].partitions
    part_of = type(part)
    request.topics[0].partitions = [part_of(0, offset, -1, "") for offset in range(50)]
    answered = world.reply(request).topics[0].partitions
    assert [one.error_code for one in answered] == [0] * 50
    assert committed(world) == 49
    assert len([key for key, _ in world.log if isinstance(key, OffsetCommitKey)]) == 1


def test_what_was_never_committed_is_minus_one() -> None:
    world = World()
    assert committed(world) == -1
    world.ask(committing(5))
    assert committed(world, "other") == -1


@pytest.mark.parametrize(
    ("generation", "member", "version", "code"),
    [
        (1, "m", 8, ErrorCode.ILLEGAL_GENERATION),
        (1, "m", 9, ErrorCode.GROUP_ID_NOT_FOUND),
        (-1, "", 9, 0),
    ],
)
def test_a_commit_to_a_group_that_is_not_there(
    generation: int, member: str, version: int, code: int
) -> None:
    world = World()
    assert part_code(world, committing(5, generation, member), version) == code
    assert committed(world) == (5 if code == 0 else -1)


def test_only_members_of_the_generation_commit() -> None:
    world = World()
    generation, (leader,) = stable(world)
    assert part_code(world, committing(5, generation, leader)) == 0
    stale = [
        (committing(6, generation - 1, leader), ErrorCode.ILLEGAL_GENERATION),
        (committing(6, generation, "x"), ErrorCode.UNKNOWN_MEMBER_ID),
        (committing(6), ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    for request, code in stale:
        assert part_code(world, request) == code
    assert committed(world) == 5


def test_members_commit_while_others_join_but_not_before_the_new_assignment() -> None:
    world = World()
    generation, (leader,) = stable(world)
    newcomer = new_id(world)
    world.ask(joining(newcomer))
    assert part_code(world, committing(5, generation, leader)) == 0
    current = world.reply(joining(leader)).generation_id
    assert part_code(world, committing(6, current, leader)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_counts_as_a_heartbeat() -> None:
    world = World()
    generation, (leader,) = stable(world)
    for offset in range(5):
        world.pass_time(9_000)
        assert part_code(world, committing(offset, generation, leader)) == 0


def test_a_note_that_is_too_long_is_refused() -> None:
    world = World()
    assert part_code(world, committing(5, note="n" * 4096)) == 0
    code = part_code(world, committing(6, note="n" * 4097))
    assert code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(world) == 5


def deleting(topic: str) -> offset_delete.Request:
    parts = [offset_delete.OffsetDeleteRequestPartition(0)]
    return offset_delete.Request(GROUP, [offset_delete.OffsetDeleteRequestTopic(topic, parts)])


def test_offsets_of_topics_that_nobody_reads_are_deleted() -> None:
    world = World()
    assert world.code(deleting("t")) == ErrorCode.GROUP_ID_NOT_FOUND
    generation, (leader,) = stable(world)
    world.ask(committing(5, generation, leader))
    world.ask(committing(5, generation, leader, topic="old"))
    code = world.reply(deleting("t")).topics[0].partitions[0].error_code
    assert code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert world.reply(deleting("old")).topics[0].partitions[0].error_code == 0
    assert (committed(world), committed(world, "old")) == (5, -1)


def test_offsets_of_an_active_group_of_others_are_not_deleted() -> None:
    world = World()
    stable(world, protocol_type="connect")
    assert world.code(deleting("t")) == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_an_empty_group_expire_and_take_it_along() -> None:
    world = World()
    generation, (leader,) = stable(world)
    world.ask(committing(5, generation, leader))
    world.ask(leaving(leader))
    world.clock.now_ms += RETENTION_MS - 1
    world.ask(ExpireOffsets())
    assert committed(world) == 5
    world.clock.now_ms += 1
    world.ask(ExpireOffsets())
    assert committed(world) == -1
    assert GROUP not in world.machine.groups
    world.reload()
    assert GROUP not in world.machine.groups


def test_offsets_that_a_member_still_reads_never_expire() -> None:
    world = World()
    generation, (leader,) = stable(world)
    world.ask(committing(5, generation, leader))
    world.ask(committing(5, generation, leader, topic="old"))
    world.clock.now_ms += 2 * RETENTION_MS
    world.ask(ExpireOffsets())
    assert (committed(world), committed(world, "old")) == (5, -1)


def test_offsets_without_a_group_expire_by_their_age() -> None:
    world = World()
    world.ask(committing(5))
    world.clock.now_ms += RETENTION_MS
    world.ask(committing(7, topic="fresh"))
    world.ask(ExpireOffsets())
    assert (committed(world), committed(world, "fresh")) == (-1, 7)


def test_an_old_client_says_how_long_to_keep_an_offset() -> None:
    world = World()
    request = committing(5)
    request.retention_time_ms = 1000
    world.ask(request, version=4)
    world.clock.now_ms += 1000
    world.ask(ExpireOffsets())
    assert committed(world) == -1


def test_offsets_of_a_deleted_topic_are_gone() -> None:
    world = World()
    world.ask(committing(5))
    world.ask(committing(6, topic="other"))
    world.ask(TopicsDeleted(frozenset({"t"})))
    assert (committed(world), committed(world, "other")) == (-1, 6)
    assert world.log[-1] == (OffsetCommitKey(GROUP, "t", 0), None)


class OffsetsAsADictionary(RuleBasedStateMachine):
    """Whatever happens around them, offsets are a dictionary that survives reloads."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.model: dict[str, int] = {}

    @rule(topic=st.sampled_from(["t", "u", "v"]), offset=st.integers(0, 100))
    def commit(self, topic: str, offset: int) -> None:
        assert part_code(self.world, committing(offset, topic=topic)) == 0
        self.model[topic] = offset

    @rule(topic=st.sampled_from(["t", "u", "v"]))
    def delete(self, topic: str) -> None:
        self.world.ask(deleting(topic))
        self.model.pop(topic, None)

    @rule(topic=st.sampled_from(["t", "u", "v"]))
    def delete_topic(self, topic: str) -> None:
        self.world.ask(TopicsDeleted(frozenset({topic})))
        self.model.pop(topic, None)

    @rule()
    def delete_group(self) -> None:
        self.world.ask(DeleteGroup(GROUP))
        self.model.clear()

    @rule()
    def come_and_go(self) -> None:
        member = new_id(self.world)
        self.world.ask(joining(member))
        self.world.ask(leaving(member))

    @rule()
    def reload(self) -> None:
        self.world.reload()

    @invariant()
    def they_are_what_was_committed(self) -> None:
        found = {topic: committed(self.world, topic) for topic in ("t", "u", "v")}
        assert found == {topic: self.model.get(topic, -1) for topic in ("t", "u", "v")}


TestOffsetsAsADictionary = OffsetsAsADictionary.TestCase
