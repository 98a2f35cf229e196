"""The requests of the classic protocol find their group, of whichever kind it is."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import leave_group
from tests.unit.groups.consuming import Consumer, ConsumerWorld, settle
from tests.unit.groups.driving import GROUP, beating, committing, joining, leaving, syncing
from tests.unit.groups.offsets.test_offsets import part_code


@pytest.fixture
def emptied() -> ConsumerWorld:
    """A consumer group that everyone has left, with an offset."""
    world = ConsumerWorld()
    consumer = Consumer(world, "a")
    settle(consumer)
    consumer.leave()
    assert part_code(world, committing(5)) == 0
    return world


def test_an_empty_consumer_group_has_no_members(emptied: ConsumerWorld) -> None:
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert emptied.code(joining("a")) == unknown
    assert emptied.code(syncing(1, "a")) == unknown
    assert emptied.code(beating(1, "a")) == unknown
    assert emptied.reply(leaving("a")).members[0].error_code == unknown
    assert emptied.code(leave_group.Request(GROUP, "a"), 1) == unknown
    assert GROUP in emptied.machine.consumers.by_id


def test_a_join_that_is_refused_leaves_the_empty_group_as_it_is(emptied: ConsumerWorld) -> None:
    code = emptied.code(joining(protocols={}))
    assert code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert GROUP in emptied.machine.consumers.by_id
    assert GROUP not in emptied.machine.groups


def test_a_join_that_is_not_refused_makes_it_a_classic_group(emptied: ConsumerWorld) -> None:
    assert emptied.code(joining()) == ErrorCode.MEMBER_ID_REQUIRED
    assert GROUP not in emptied.machine.consumers.by_id
    assert GROUP in emptied.machine.groups


def test_members_of_a_group_that_does_not_exist_are_unknown() -> None:
    world = ConsumerWorld()
    for request in (joining("a"), syncing(1, "a"), beating(1, "a")):
        assert world.code(request) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.machine.groups == {}
