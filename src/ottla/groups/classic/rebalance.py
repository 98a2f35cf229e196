"""How a classic group rebalances: members gather, the next generation begins, or some are gone.

A rebalance ends within the longest rebalance timeout of the members: those who have not joined
again by then are out, static ones aside, which only their session ends.
"""

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode
from ottla.protocol.group_records import GroupMetadataKey
from ottla.protocol.messages import join_group, sync_group

SESSION, JOIN, INITIAL, SYNC = "session", "join", "initial", "sync"


def expect_heartbeat(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    turn.set_timer(SESSION, group.id, member.id, member.session_timeout_ms)


def rebalance_or_complete(turn: Turn, group: ClassicGroup) -> None:
    """Something about the members changed."""
    if group.state is ClassicState.PREPARING_REBALANCE:
        complete_if_all_joined(turn, group)
    else:
        prepare(turn, group)


def prepare(turn: Turn, group: ClassicGroup) -> None:
    """Ask everyone to join again."""
    assert group.state is not ClassicState.PREPARING_REBALANCE, "it is being prepared already"
    if group.state is ClassicState.COMPLETING_REBALANCE:
        forget_assignment(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    turn.cancel_timer(SYNC, group.id)
    group.was_empty = group.state is ClassicState.EMPTY
    group.state = ClassicState.PREPARING_REBALANCE
    group.state_timestamp = turn.wall
    if not group.was_empty:
        _complete_or_wait(turn, group)
        return
    delay_ms = turn.settings.initial_rebalance_delay_ms
    group.is_member_new = False
    group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    if delay_ms <= 0 and group.has_all_joined:
        complete(turn, group)
    else:
        turn.set_timer(INITIAL, group.id, "", max(delay_ms, 0))


def initial_delay_over(turn: Turn, group: ClassicGroup) -> None:
    """A new group waits on as long as members keep coming, within their rebalance timeout."""
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return
    if group.is_member_new and group.initial_remaining_ms > 0:
        group.is_member_new = False
        delay_ms = min(turn.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - delay_ms, 0)
        turn.set_timer(INITIAL, group.id, "", delay_ms)
    else:
        complete(turn, group)


def complete_if_all_joined(turn: Turn, group: ClassicGroup) -> None:
    is_preparing = group.state is ClassicState.PREPARING_REBALANCE
    if is_preparing and not group.was_empty and group.has_all_joined:
        complete(turn, group)


def complete(turn: Turn, group: ClassicGroup) -> None:
    """Whoever joined is in the next generation."""
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return
    late = [m for m in group.members.values() if m.joining is None and m.instance_id is None]
    for member in late:
        turn.cancel_timer(SESSION, group.id, member.id)
        group.remove(member.id)
    if group.members and not _has_leader(group):
        turn.set_timer(JOIN, group.id, "", group.rebalance_timeout_ms)
        return  # Only static members are left, and none of them is back yet.
    turn.cancel_timer(JOIN, group.id)
    turn.cancel_timer(INITIAL, group.id)
    group.generation += 1
    group.pending_sync.clear()
    group.was_empty = False
    group.state_timestamp = turn.wall
    if not group.members:
        group.protocol = group.leader = None
        group.state = ClassicState.EMPTY
        turn.write(GroupMetadataKey(group.id), group.record({}))
        return
    group.protocol = group.select_protocol()
    group.state = ClassicState.COMPLETING_REBALANCE
    for member in group.members.values():
        member.is_new = False
        group.pending_sync.add(member.id)
        if member.joining is not None:
            ticket, member.joining = member.joining, None
            turn.reply(ticket, joined(group, member))
        expect_heartbeat(turn, group, member)
    turn.set_timer(SYNC, group.id, "", group.rebalance_timeout_ms)


def sync_is_late(turn: Turn, group: ClassicGroup) -> None:
    """Whoever joined but never fetched its assignment is out."""
    late = [group.members[id_] for id_ in sorted(group.pending_sync)]
    if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE) or not late:
        return
    for member in late:
        drop_member(turn, group, member)
    prepare(turn, group)


def remove_member(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    """The member is out: by its own wish, or because nothing was heard of it."""
    drop_member(turn, group, member)
    if group.state is ClassicState.PREPARING_REBALANCE:
        complete_if_all_joined(turn, group)
    elif group.state is not ClassicState.EMPTY:
        prepare(turn, group)


def remove_pending(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    group.pending.discard(member_id)
    turn.cancel_timer(SESSION, group.id, member_id)
    complete_if_all_joined(turn, group)


def session_is_over(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    if member_id in group.pending:
        remove_pending(turn, group, member_id)
        return
    member = group.members.get(member_id)
    if member is None:
        return
    if member.has_satisfied_heartbeat:
        expect_heartbeat(turn, group, member)
    else:
        remove_member(turn, group, member)


def drop_member(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    turn.cancel_timer(SESSION, group.id, member.id)
    refuse_waiting(turn, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.id)


def refuse_waiting(turn: Turn, member: ClassicMember, code: ErrorCode) -> None:
    if member.joining is not None:
        ticket, member.joining = member.joining, None
        turn.reply(ticket, join_group.Response(error_code=code, member_id=member.id))
    if member.syncing is not None:
        ticket, member.syncing = member.syncing, None
        turn.reply(ticket, sync_group.Response(error_code=code))


def forget_assignment(turn: Turn, group: ClassicGroup, code: ErrorCode) -> None:
    for member in group.members.values():
        member.assignment = b""
        if member.syncing is not None:
            ticket, member.syncing = member.syncing, None
            turn.reply(ticket, sync_group.Response(error_code=code))


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> join_group.Response:
    """What a member is told about its generation; the leader hears of everyone."""
    leader = group.leader or "" if leader is None else leader
    members = []
    if leader == member.id:
        members = [
            join_group.JoinGroupResponseMember(m.id, m.instance_id, m.metadata(group.protocol))
            for m in group.members.values()
        ]
    return join_group.Response(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader,
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=members,
    )


def _complete_or_wait(turn: Turn, group: ClassicGroup) -> None:
    if group.has_all_joined:
        complete(turn, group)
    else:
        turn.set_timer(JOIN, group.id, "", group.rebalance_timeout_ms)


def _has_leader(group: ClassicGroup) -> bool:
    """Whether someone who joined leads; if the leader is late, another one takes over."""
    leader = group.members.get(group.leader or "")
    if leader is None or leader.joining is None:
        joined_ids = [m.id for m in group.members.values() if m.joining is not None]
        if not joined_ids:
            return False
        group.leader = joined_ids[0]
    return True
