"""Elections: who stands, who votes for whom, and what a new leader tells the voters.

A voter that misses its leader first asks whether it would be elected (KIP-996); only then does it
raise the epoch. So a node that was cut off, or was wrong about its leader, disturbs nobody.
"""

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.model.machine import Ticket
from ottla.model.types import ZERO_UUID, Monotonic, NodeId, Uuid
from ottla.protocol.messages import begin_quorum_epoch, end_quorum_epoch, vote
from ottla.quorum import role_changes
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.leadership import Leader
from ottla.quorum.log_view import OffsetAndEpoch, end, is_up_to_date
from ottla.quorum.messages import (
    Leadership,
    begin_request,
    begin_response,
    end_request,
    end_response,
    leadership_in,
    partition_of,
    vote_request,
    vote_response,
)
from ottla.quorum.roles import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Unattached,
    would_grant,
)
from ottla.quorum.voters import Address, ReplicaKey

if TYPE_CHECKING:
    from ottla.quorum.machine import Quorum


def may_stand(quorum: "Quorum") -> bool:
    """Whether we vote, or did before a change that may not be committed.

    One who was taken out may be the only one to have the record that says so: then nobody else can
    be elected. (Ongaro's thesis, 4.2.2.)
    """
    return quorum.is_controller and quorum.history.names(quorum.key)


def leader_lost(quorum: "Quorum", now: Monotonic, *, by_hint: bool = False) -> None:
    """Nothing was heard of the leader in time, or (a hint) its connection closed."""
    if may_stand(quorum):
        stand(quorum, now, doubted=quorum.state.leader if by_hint else None)
    else:
        role_changes.wait(quorum, Unattached(now))


def stand(quorum: "Quorum", now: Monotonic, *, doubted: NodeId | None = None) -> None:
    """Ask for pre-votes; alone, there is nobody to ask."""
    ballot = Prospective(_give_up_at(quorum, now), {quorum.key.id})
    if doubted in quorum.voters.by_id:
        ballot.doubted = doubted
        ballot.doubted_until = Monotonic(now + 2 * quorum.timing.hint_ms_max)
    if ballot.is_won(quorum.voters):
        campaign(quorum, now)
    else:
        role_changes.wait(quorum, ballot)


def campaign(quorum: "Quorum", now: Monotonic) -> None:
    """Raise the epoch and vote for ourselves."""
    epoch = quorum.state.epoch + 1
    own = quorum.key
    ballot = Candidate(_give_up_at(quorum, now), {own.id})
    if ballot.is_won(quorum.voters):
        # Our own vote is the majority, so that voting and leading are written in one step.
        role_changes.lead(quorum, epoch, [own.id], now)
    else:
        quorum.leader_address = None
        role_changes.wait(quorum, ballot, ElectionState(epoch, NOBODY, own.id, own.directory_id))


def gave_up(quorum: "Quorum", ballot: Prospective | Candidate, now: Monotonic) -> None:
    """The time for answers, or the pause after a defeat, is over."""
    if isinstance(ballot, Prospective) and not ballot.is_lost and _follow_again(quorum, now):
        return
    if not ballot.is_lost:
        quorum.elections_lost += 1
    stand(quorum, now)


def ask_for_votes(quorum: "Quorum", ballot: Prospective | Candidate, now: Monotonic) -> None:
    if ballot.is_lost:
        return
    for voter in quorum.voters.by_id.values():
        if voter.id in ballot.granted | ballot.rejected:
            continue
        key = ReplicaKey(voter.id, voter.directory_id)
        request = vote_request(
            quorum.cluster_id,
            quorum.state.epoch,
            quorum.key,
            key,
            end(quorum.log),
            pre_vote=isinstance(ballot, Prospective),
        )
        quorum.send(voter.id, voter.address(quorum.listener), request, now)


def vote_requested(quorum: "Quorum", ticket: Ticket, request: vote.Request, now: Monotonic) -> None:
    part = partition_of(request)
    error = _error(quorum, request.cluster_id, part.replica_epoch)
    if error is None and not _is_us(quorum, request.voter_id, part.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    if error is not None:
        quorum.answer(ticket, vote_response(quorum.leadership, quorum.leader_address, error=error))
        return
    if part.replica_epoch > quorum.state.epoch:
        role_changes.detach(quorum, part.replica_epoch, now)
    candidate = ReplicaKey(NodeId(part.replica_id), part.replica_directory_id)
    place = OffsetAndEpoch(part.last_offset, part.last_offset_epoch)
    granted = would_grant(
        quorum.role,
        quorum.state,
        candidate,
        is_pre_vote=part.pre_vote,
        up_to_date=is_up_to_date(quorum.log, place),
    )
    if granted and not part.pre_vote and quorum.state.voted == NOBODY:
        stand_at = Monotonic(now + quorum.timing.election_timeout(quorum.below))
        state = ElectionState(quorum.state.epoch, NOBODY, candidate.id, candidate.directory_id)
        role_changes.wait(quorum, Unattached(stand_at), state)
    quorum.answer(ticket, vote_response(quorum.leadership, quorum.leader_address, granted=granted))


def vote_answered(
    quorum: "Quorum", voter: NodeId, request: vote.Request, response: vote.Response, now: Monotonic
) -> None:
    part = partition_of(response)
    said = leadership_in(part)
    role_changes.learn(quorum, said, response, now)
    ballot = quorum.role
    if not isinstance(ballot, Prospective | Candidate):
        return
    assert partition_of(request).replica_epoch == quorum.state.epoch, "it is of the present role"
    is_well = voter == said.leader and not part.vote_granted
    if isinstance(ballot, Prospective) and is_well and _follow_again(quorum, now):
        return  # The leader itself says so.
    if part.error_code == ErrorCode.NONE and part.vote_granted:
        ballot.granted.add(voter)
    elif part.error_code == ErrorCode.NONE:
        ballot.rejected.add(voter)
    else:
        quorum.outbox.retry_later(voter, vote.Request, now)
    count(quorum, ballot, now)


def unreachable(
    quorum: "Quorum", ballot: Prospective | Candidate, voter: NodeId, now: Monotonic
) -> None:
    ballot.unreachable.add(voter)
    count(quorum, ballot, now)


def count(quorum: "Quorum", ballot: Prospective | Candidate, now: Monotonic) -> None:
    is_checking = isinstance(ballot, Prospective) and ballot.is_checking(now)
    if ballot.is_won(quorum.voters):
        if is_checking:
            return
        if isinstance(ballot, Prospective):
            campaign(quorum, now)
        else:
            role_changes.lead(quorum, quorum.state.epoch, sorted(ballot.granted), now)
        return
    if ballot.is_lost or not ballot.is_beyond_hope(quorum.voters):
        return
    if isinstance(ballot, Prospective) and ballot.is_rejected(quorum.voters):
        quorum.elections_lost += 1
        if _follow_again(quorum, now):
            return  # The others hear the leader, or know more than we do.
        quorum.elections_lost -= 1
    ballot.is_lost = True
    ballot.give_up_at = Monotonic(now + quorum.timing.backoff(quorum.below, quorum.elections_lost))
    quorum.elections_lost += 1


def begin_requested(
    quorum: "Quorum", ticket: Ticket, request: begin_quorum_epoch.Request, now: Monotonic
) -> None:
    part = partition_of(request)
    leader = NodeId(part.leader_id)
    error = _error(quorum, request.cluster_id, part.leader_epoch, leader)
    if error is None and leader == quorum.key.id:
        error = ErrorCode.INVALID_REQUEST
    if error is not None:
        quorum.answer(ticket, begin_response(quorum.leadership, quorum.leader_address, error))
        return
    where = {e.name: Address(e.host, e.port) for e in request.leader_endpoints}
    address = where.get(quorum.listener) or next(iter(where.values()), None)
    address = address or quorum.address_of(leader)
    is_following = isinstance(quorum.role, Follower) and part.leader_epoch == quorum.state.epoch
    if address is not None and not is_following:
        role_changes.follow(quorum, leader, part.leader_epoch, address, now)
    elif part.leader_epoch > quorum.state.epoch:
        role_changes.detach(quorum, part.leader_epoch, now)
    if not _is_us(quorum, request.voter_id, part.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    error = error or ErrorCode.NONE
    quorum.answer(ticket, begin_response(quorum.leadership, quorum.leader_address, error))


def end_requested(
    quorum: "Quorum", ticket: Ticket, request: end_quorum_epoch.Request, now: Monotonic
) -> None:
    """The leader resigns; the one that has most of the log stands at once."""
    part = partition_of(request)
    error = _error(quorum, request.cluster_id, part.leader_epoch)
    if error is not None:
        quorum.answer(ticket, end_response(quorum.leadership, quorum.leader_address, error))
        return
    if part.leader_epoch > quorum.state.epoch:
        role_changes.detach(quorum, part.leader_epoch, now)
    quorum.answer(ticket, end_response(quorum.leadership, quorum.leader_address))
    if not quorum.is_voter or not isinstance(quorum.role, Follower | Unattached):
        return
    order = [info.candidate_id for info in part.preferred_candidates] or part.preferred_successors
    place = order.index(quorum.key.id) if quorum.key.id in order else len(order)
    if place == 0:
        stand(quorum, now)
        return
    later = quorum.timing.hint_ms_max * place + quorum.below(quorum.timing.hint_ms_max)
    role_changes.wait(quorum, Unattached(Monotonic(now + later)))


def told(
    quorum: "Quorum",
    voter: NodeId,
    response: begin_quorum_epoch.Response | end_quorum_epoch.Response,
    now: Monotonic,
) -> None:
    """A voter knows that we lead, or that we do not any more."""
    part = partition_of(response)
    role_changes.learn(quorum, leadership_in(part), response, now)
    role = quorum.role
    if isinstance(role, Leader) and part.error_code == ErrorCode.NONE:
        node = quorum.voters.by_id.get(voter)
        if node is not None:
            role.told_at[voter] = now
    elif isinstance(role, Resigned):
        role.untold.discard(voter)


def tell_voters(quorum: "Quorum", leader: Leader, now: Monotonic) -> None:
    """Say that we lead to whoever has not fetched from us for a while."""
    after_ms = quorum.timing.fetch_timeout_ms // 2
    for node in list(leader.unheard(quorum.voters, after_ms, now)):
        if quorum.outbox.is_busy(node, begin_quorum_epoch.Request, now):
            continue
        voter = quorum.voters.by_id[node]
        said = Leadership(leader.epoch, quorum.key.id)
        key = ReplicaKey(node, voter.directory_id)
        request = begin_request(quorum.cluster_id, said, key, quorum.endpoints)
        quorum.send(node, voter.address(quorum.listener), request, now)


def resign(quorum: "Quorum", leader: Leader, now: Monotonic, *, is_leaving: bool = False) -> None:
    """Stop leading: too few voters listen, we are none any more, or the process stops."""
    successors = leader.successors(quorum.voters)
    stand_at = Monotonic(now + quorum.timing.election_timeout(quorum.below))
    untold = {key.id for key in successors}
    role_changes.wait(quorum, Resigned(stand_at, untold, successors, is_leaving))


def tell_resigned(quorum: "Quorum", role: Resigned, now: Monotonic) -> None:
    for node in sorted(role.untold):
        said = Leadership(quorum.state.epoch, quorum.key.id)
        request = end_request(quorum.cluster_id, said, role.successors, quorum.endpoints)
        quorum.send(node, quorum.address_of(node), request, now)


def _follow_again(quorum: "Quorum", now: Monotonic) -> bool:
    """Go back to the leader that we had, if it is one."""
    leader = quorum.state.leader
    address = quorum.leader_address or quorum.address_of(leader)
    if leader in (NOBODY, quorum.key.id) or address is None:
        return False
    role_changes.follow(quorum, leader, quorum.state.epoch, address, now)
    return True


def _give_up_at(quorum: "Quorum", now: Monotonic) -> Monotonic:
    return Monotonic(now + quorum.timing.election_timeout(quorum.below))


def _error(
    quorum: "Quorum", cluster_id: str | None, epoch: int, leader: NodeId = NOBODY
) -> ErrorCode | None:
    if cluster_id is not None and cluster_id != quorum.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if epoch < quorum.state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not role_changes.may_follow(quorum, epoch, leader):
        return ErrorCode.INVALID_REQUEST
    return None


def _is_us(quorum: "Quorum", voter_id: int, directory_id: Uuid) -> bool:
    """Whether the request was meant for this node, on this disk; old ones do not say."""
    is_node = voter_id in (-1, quorum.key.id)
    return is_node and directory_id in (ZERO_UUID, quorum.key.directory_id)
