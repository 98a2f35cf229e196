"""SyncGroup, Heartbeat and LeaveGroup of a classic group."""

from ottla.groups.classic.group import ClassicGroup, ClassicState
from ottla.groups.classic.rebalance import (
    expect_heartbeat,
    forget_assignment,
    prepare,
    remove_member,
    remove_pending,
)
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Ticket
from ottla.protocol.group_records import GroupMetadataKey, GroupRecord
from ottla.protocol.messages import heartbeat as heartbeat_wire
from ottla.protocol.messages import leave_group as leave_wire
from ottla.protocol.messages import sync_group as wire


def sync(turn: Turn, ticket: Ticket, request: wire.Request, group: ClassicGroup) -> None:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol
    ):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    match group.state:
        case ClassicState.EMPTY:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        case ClassicState.PREPARING_REBALANCE:
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS)
        case ClassicState.COMPLETING_REBALANCE:
            if member.syncing is not None:
                code = ErrorCode.REBALANCE_IN_PROGRESS
                turn.reply(member.syncing, wire.Response(error_code=code))
            member.syncing = ticket
            group.pending_sync.discard(member.id)
            if member.id == group.leader:
                _assign(turn, request, group)
        case ClassicState.STABLE:
            group.pending_sync.discard(member.id)
            turn.reply(ticket, _assigned(group, member.assignment))
            expect_heartbeat(turn, group, member)


def _assign(turn: Turn, request: wire.Request, group: ClassicGroup) -> None:
    """Write the leader's assignment and answer all members that wait for it.

    If the log refuses it, all of them get the error and the group rebalances, as in Kafka.
    """
    given = {assigned.member_id: assigned.assignment for assigned in request.assignments}
    group.state_timestamp = turn.wall
    record = GroupRecord(GroupMetadataKey(group.id), group.record(given))
    try:
        turn.admit(record)
    except Refusal as refusal:
        forget_assignment(turn, group, refusal.code)
        prepare(turn, group)
        return
    turn.write(*record)
    for member in group.members.values():
        if member.syncing is not None:
            ticket, member.syncing = member.syncing, None
            turn.reply(ticket, _assigned(group, given.get(member.id, b"")))
            expect_heartbeat(turn, group, member)


def _assigned(group: ClassicGroup, assignment: bytes) -> wire.Response:
    return wire.Response(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def _differs(said: str | None, is_: str | None) -> bool:
    return said is not None and said != is_


def heartbeat(turn: Turn, request: heartbeat_wire.Request, group: ClassicGroup) -> ErrorCode:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    if group.state is ClassicState.EMPTY:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    expect_heartbeat(turn, group, member)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    turn: Turn, members: list[leave_wire.MemberIdentity], group: ClassicGroup
) -> list[leave_wire.MemberResponse]:
    return [
        leave_wire.MemberResponse(
            one.member_id, one.group_instance_id, _leave_one(turn, one, group)
        )
        for one in members
    ]


def _leave_one(turn: Turn, one: leave_wire.MemberIdentity, group: ClassicGroup) -> ErrorCode:
    member_id = one.member_id
    if not member_id:  # An admin removes a static member without knowing its id.
        known = group.static.get(one.group_instance_id or "")
        if one.group_instance_id is None or known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    if member_id in group.pending:
        remove_pending(turn, group, member_id)
        return ErrorCode.NONE
    try:
        member = group.check_member(member_id, one.group_instance_id)
    except Refusal as refusal:
        return refusal.code
    remove_member(turn, group, member)
    return ErrorCode.NONE
