"""JoinGroup: become a member of a classic group, or join its next generation again.

A member without an id gets one and joins again with it (KIP-394), unless it is a static one
(KIP-345): that takes over from whoever bore its instance id before, and fences it.
"""

from typing import NamedTuple

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.rebalance import (
    SESSION,
    complete_if_all_joined,
    expect_heartbeat,
    joined,
    prepare,
    rebalance_or_complete,
    refuse_waiting,
)
from ottla.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Ticket
from ottla.protocol.group_records import GroupMetadataKey, GroupRecord
from ottla.protocol.messages import join_group as wire

KNOWN_ID_SINCE = 4
MEMBER_ID_BYTES_MAX = 32_767  # As long as any string.
SKIP_ASSIGNMENT_SINCE = 9


class _Joining(NamedTuple):
    """A JoinGroup under way."""

    turn: Turn
    ticket: Ticket
    command: GroupCommand
    group: ClassicGroup

    @property
    def request(self) -> wire.Request:
        request: wire.Request = self.command.request
        return request

    @property
    def protocols(self) -> list[tuple[str, bytes]]:
        return [(protocol.name, protocol.metadata) for protocol in self.request.protocols]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The first version has only one timeout for both."""
        timeout_ms = self.request.rebalance_timeout_ms
        return timeout_ms if self.command.version >= 1 else self.request.session_timeout_ms


def check_join(turn: Turn, request: wire.Request) -> None:
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    low, high = turn.settings.session_timeout_ms_min, turn.settings.session_timeout_ms_max
    if not low <= request.session_timeout_ms <= high:
        raise Refusal(ErrorCode.INVALID_SESSION_TIMEOUT)


def join(turn: Turn, ticket: Ticket, command: GroupCommand, group: ClassicGroup) -> None:
    joining = _Joining(turn, ticket, command, group)
    request = joining.request
    if _is_full(joining):
        group.pending.discard(request.member_id)
        turn.reply(ticket, wire.Response(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        return
    if not group.supports(request.protocol_type, joining.protocols):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id:
        _join_known(joining)
    elif request.group_instance_id is not None:
        _join_static(joining, request.group_instance_id)
    else:
        _join_unknown(joining)


def _is_full(joining: _Joining) -> bool:
    group, size_max = joining.group, joining.turn.settings.size_max
    member = group.members.get(joining.request.member_id)
    match group.state:
        case ClassicState.EMPTY:
            return False
        case ClassicState.PREPARING_REBALANCE:
            waiting = sum(m.joining is not None for m in group.members.values())
            return (member is None or member.joining is None) and waiting >= size_max
        case _:
            is_known = member is not None or joining.request.member_id in group.pending
            return not is_known and len(group.members) + len(group.pending) >= size_max


def _join_unknown(joining: _Joining) -> None:
    turn, group = joining.turn, joining.group
    member_id = f"{joining.command.client_id}-{turn.around.new_id()}"
    if joining.command.version < KNOWN_ID_SINCE:
        _add(joining, member_id)
        return
    group.pending.add(member_id)
    turn.set_timer(SESSION, group.id, member_id, joining.request.session_timeout_ms)
    code = ErrorCode.MEMBER_ID_REQUIRED
    turn.reply(joining.ticket, wire.Response(error_code=code, member_id=member_id))


def _join_static(joining: _Joining, instance_id: str) -> None:
    member_id = f"{instance_id}-{joining.turn.around.new_id()}"
    if len(member_id.encode()) > MEMBER_ID_BYTES_MAX:
        raise Refusal(ErrorCode.INVALID_REQUEST, "The group instance id is too long.")
    if instance_id in joining.group.static:
        _replace_static(joining, instance_id, member_id)
    else:
        _add(joining, member_id)


def _join_known(joining: _Joining) -> None:
    turn, group, request = joining.turn, joining.group, joining.request
    if request.member_id in group.pending:
        if request.group_instance_id is not None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        _add(joining, request.member_id)
        return
    member = group.check_member(request.member_id, request.group_instance_id)
    is_same = member.protocols == joining.protocols
    if group.state is ClassicState.COMPLETING_REBALANCE and is_same:
        # It did not hear of its generation: nothing has changed, so say it again.
        turn.reply(joining.ticket, joined(group, member))
    elif group.state is ClassicState.STABLE and is_same and member.id != group.leader:
        turn.reply(joining.ticket, joined(group, member))
    elif group.state is ClassicState.EMPTY:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        _update(joining, member)
        rebalance_or_complete(turn, group)


def _add(joining: _Joining, member_id: str) -> None:
    turn, group, request = joining.turn, joining.group, joining.request
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        joining.command.client_id,
        joining.command.client_host,
        joining.rebalance_timeout_ms,
        request.session_timeout_ms,
        joining.protocols,
        joining=joining.ticket,
        is_new=True,
    )
    group.add(member, request.protocol_type)
    if group.state is ClassicState.PREPARING_REBALANCE and group.was_empty:
        group.is_member_new = True
    turn.set_timer(SESSION, group.id, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(turn, group)


def _update(joining: _Joining, member: ClassicMember) -> None:
    if member.joining is not None:  # It asked before, and gave up waiting: only one is answered.
        response = wire.Response(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.id)
        joining.turn.reply(member.joining, response)
    member.protocols = joining.protocols
    member.rebalance_timeout_ms = joining.rebalance_timeout_ms
    member.session_timeout_ms = joining.request.session_timeout_ms
    member.joining = joining.ticket


def _replace_static(joining: _Joining, instance_id: str, member_id: str) -> None:
    """The same instance is back under a new member id: whoever still uses the old one is out."""
    turn, group = joining.turn, joining.group
    old_id = group.static[instance_id]
    old = group.members[old_id]
    was_leader, old_leader = group.leader == old_id, group.leader
    refuse_waiting(turn, old, ErrorCode.FENCED_INSTANCE_ID)
    turn.cancel_timer(SESSION, group.id, old_id)
    # In its place, so that the order of members stays.
    group.members = {
        (member_id if id_ == old_id else id_): member for id_, member in group.members.items()
    }
    old.id = member_id
    group.static[instance_id] = member_id
    if was_leader:
        group.leader = member_id
    if old_id in group.pending_sync:
        group.pending_sync.remove(old_id)
        group.pending_sync.add(member_id)
    _update(joining, old)
    expect_heartbeat(turn, group, old)
    # The next record of a group that was a consumer group says that it has rebalanced.
    is_kept = not group.is_converted and group.select_protocol() == group.protocol
    match group.state:
        case ClassicState.STABLE if is_kept:
            _keep_generation(joining, old, old_leader or "")
        case ClassicState.PREPARING_REBALANCE:
            complete_if_all_joined(turn, group)
        case _:
            prepare(turn, group)


def _keep_generation(joining: _Joining, member: ClassicMember, old_leader: str) -> None:
    """Nothing changes but a member id: write it, and spare everyone a rebalance.

    If the log refuses the record the group rebalances.
    """
    turn, group = joining.turn, joining.group
    kept = {id_: m.assignment for id_, m in group.members.items()}
    record = GroupRecord(GroupMetadataKey(group.id), group.record(kept))
    try:
        turn.admit(record)
    except Refusal:
        prepare(turn, group)
        return
    member.joining = None
    turn.write(*record)
    if joining.command.version >= SKIP_ASSIGNMENT_SINCE:
        is_leader = group.leader == member.id
        turn.reply(joining.ticket, joined(group, member, skip_assignment=is_leader))
    else:
        # Under its old id it led; told so, it would assign anew and end the generation.
        turn.reply(joining.ticket, joined(group, member, leader=old_leader))
