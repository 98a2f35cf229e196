"""SyncGroup, Heartbeat and LeaveGroup, with every way to be refused."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import leave_group
from tests.unit.groups.driving import (
    GROUP,
    World,
    beating,
    joining,
    leaving,
    new_id,
    stable,
    syncing,
)


def test_an_assignment_reaches_everyone_and_survives_a_reload() -> None:
    world = World()
    generation, members = stable(world, 3)
    world.reload()
    for member in members:
        assert world.reply(syncing(generation, member)).assignment == member.encode()
        assert world.code(beating(generation, member)) == 0


def test_nobody_hears_an_assignment_that_is_not_kept_yet() -> None:
    world = World()
    member = new_id(world)
    world.ask(joining(member))
    before = len(world.log)
    world.reply(syncing(1, member, {member: b"all"}))
    assert len(world.log) == before + 1
    assert world.log[-1].value.members[0].assignment == b"all"


@pytest.mark.parametrize(
    ("generation", "member", "code"),
    [
        (0, None, ErrorCode.ILLEGAL_GENERATION),
        (2, None, ErrorCode.ILLEGAL_GENERATION),
        (1, "x", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_whoever_is_of_another_generation_changes_nothing(
    generation: int, member: str | None, code: ErrorCode
) -> None:
    world = World()
    _, (leader,) = stable(world)
    before = list(world.log)
    assert world.code(syncing(generation, member or leader, {leader: b"no"})) == code
    assert world.code(beating(generation, member or leader)) == code
    assert world.log == before


def test_a_group_that_nobody_knows_has_no_members() -> None:
    world = World()
    assert world.code(syncing(1, "m")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(beating(1, "m")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.reply(leaving("m")).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_of_another_protocol_is_refused() -> None:
    world = World()
    member = new_id(world)
    world.ask(joining(member))
    for fields in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        code = world.code(syncing(1, member, **fields))
        assert code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = syncing(1, member, protocol_type="consumer", protocol_name="range")
    assert world.code(right) == 0


def test_a_sync_while_others_join_says_that_a_rebalance_goes_on() -> None:
    world = World()
    generation, (leader,) = stable(world)
    world.ask(joining(new_id(world)))
    assert world.code(syncing(generation, leader)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_member_alive() -> None:
    world = World()
    generation, (leader,) = stable(world)
    for _ in range(10):
        world.pass_time(9_999)
        assert world.code(beating(generation, leader)) == 0
    world.pass_time(10_000)
    assert world.code(beating(generation, leader)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_leave_one_by_one_or_together() -> None:
    world = World()
    world.reply(joining(group_instance_id="one"))
    pending = new_id(world)
    request = leave_group.Request(
        GROUP,
        members=[
            leave_group.MemberIdentity("", "one"),
            leave_group.MemberIdentity(pending),
            leave_group.MemberIdentity("", "two"),
            leave_group.MemberIdentity(""),
            leave_group.MemberIdentity("x"),
        ],
    )
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    codes = [member.error_code for member in world.reply(request).members]
    assert codes == [0, 0, unknown, unknown, unknown]


def test_a_fenced_member_cannot_leave_for_the_other() -> None:
    world = World()
    first = world.reply(joining(group_instance_id="one"))
    reply = world.reply(leaving("x", "one"))
    assert reply.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert first.member_id in world.machine.groups[GROUP].members


def test_an_old_client_leaves_with_its_error_at_the_top() -> None:
    world = World()
    _, (leader,) = stable(world)
    assert world.code(leave_group.Request(GROUP, "x"), 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(leave_group.Request(GROUP, leader), 2) == 0


def test_a_reload_in_the_middle_of_a_rebalance_makes_everyone_join_again() -> None:
    world = World()
    generation, (leader,) = stable(world)
    newcomer = new_id(world)
    world.ask(joining(newcomer))
    current = world.reply(joining(leader)).generation_id
    world.reload()
    assert world.code(syncing(current, leader)) == ErrorCode.ILLEGAL_GENERATION
    assert world.code(syncing(current, newcomer)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.reply(joining(leader)).generation_id == generation + 1
