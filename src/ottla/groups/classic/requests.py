"""The requests of the classic protocol, to groups of either kind."""

from ottla.groups.classic import membership as classic_membership
from ottla.groups.classic.joining import check_join, join
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.group_table import GroupTable
from ottla.groups.mixed import membership as mixed_membership
from ottla.groups.mixed.migration import write_end
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Ticket
from ottla.protocol.messages import heartbeat, join_group, leave_group, sync_group

MEMBERS_SINCE = 3  # In LeaveGroup: several members at once.


def answer_join(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: join_group.Request = command.request
    check_join(turn, request)
    consumers = table.consumers.by_id.get(request.group_id)
    if consumers is not None:
        if not consumers.is_empty:
            turn.reply(ticket, mixed_membership.join(turn, command, consumers))
            return
        if request.member_id:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        write_end(turn, consumers)  # Nobody is in it: it gives way.
    elif request.group_id not in table.classic and request.member_id:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    turn.admit()  # A rebalance ends with a record: none begins while there can be none.
    group = table.classics.get_or_new(request.group_id)
    try:
        join(turn, ticket, command, group)
    except Refusal:
        if consumers is not None:
            del table.classic[group.id]  # It stays what it is.
        raise
    finally:
        table.classics.drop_if_void(group)


def answer_sync(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: sync_group.Request = command.request
    consumers = _in_use(table, request.group_id)
    if consumers is not None:
        turn.reply(ticket, mixed_membership.sync(turn, request, consumers))
        return
    group = table.classics.get(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    classic_membership.sync(turn, ticket, request, group)


def answer_heartbeat(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: heartbeat.Request = command.request
    consumers = _in_use(table, request.group_id)
    if consumers is not None:
        code = mixed_membership.heartbeat(turn, request, consumers)
    else:
        group = table.classics.get(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        code = classic_membership.heartbeat(turn, request, group)
    turn.reply(ticket, heartbeat.Response(error_code=code))


def answer_leave(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: leave_group.Request = command.request
    members = request.members
    if command.version < MEMBERS_SINCE:
        members = [leave_group.MemberIdentity(request.member_id)]
    results = _leave(table, turn, request.group_id, members)
    if command.version < MEMBERS_SINCE:
        turn.reply(ticket, leave_group.Response(error_code=results[0].error_code))
    else:
        turn.reply(ticket, leave_group.Response(members=results))


def _leave(
    table: GroupTable, turn: Turn, group_id: str, members: list[leave_group.MemberIdentity]
) -> list[leave_group.MemberResponse]:
    consumers = _in_use(table, group_id)
    if consumers is not None:
        return mixed_membership.leave(turn, members, consumers)
    group = table.classic.get(group_id)
    if group is None:
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        return [
            leave_group.MemberResponse(one.member_id, one.group_instance_id, unknown)
            for one in members
        ]
    turn.admit()
    results = classic_membership.leave(turn, members, group)
    table.classics.drop_if_void(group)
    return results


def _in_use(table: GroupTable, group_id: str) -> ConsumerGroup | None:
    group = table.consumers.by_id.get(group_id)
    return group if group is not None and not group.is_empty else None
