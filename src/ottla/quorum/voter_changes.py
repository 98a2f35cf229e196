"""Adding, removing and updating voters while the quorum runs (KIP-853), as the leader does it.

One change at a time: the next begins when the voters record of the last is committed, and not
before the leader has committed something of its own epoch. The new set counts as soon as its
record is in the log.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Ticket
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import (
    add_raft_voter,
    api_versions,
    remove_raft_voter,
    update_raft_voter,
)
from ottla.quorum import elections
from ottla.quorum.effects import AppendControl
from ottla.quorum.election_state import NOBODY
from ottla.quorum.leadership import Leader
from ottla.quorum.voters import Address, ReplicaKey, Voter, Voters

if TYPE_CHECKING:
    from ottla.quorum.machine import Quorum

KRAFT_VERSION = "kraft.version"
DYNAMIC_VERSION = 1
UPDATE_TIMEOUT_MS = 30_000


@dataclass(slots=True)
class Change:
    """The one change under way."""

    ticket: Ticket | None  # None once it is answered.
    response: type
    give_up_at: Monotonic
    voters: Voters  # As it shall be.
    joins: ReplicaKey | None = None  # A voter that has to catch up first.
    address: Address | None = None  # Where its versions are asked for; None when known.
    answers_when_written: bool = False
    is_written: bool = False  # On its way into the log.
    offset: int | None = None  # Where its record lies.


def add_requested(
    quorum: "Quorum", ticket: Ticket, request: add_raft_voter.Request, now: Monotonic
) -> None:
    key = ReplicaKey(NodeId(request.voter_id), request.voter_directory_id)
    endpoints = {e.name: Address(e.host, e.port) for e in request.listeners}
    try:
        _check(quorum, request.cluster_id)
        if key.id in quorum.voters.by_id:
            raise Refusal(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for ReplicaKey(id={key.id}) is already part of the set of voters "
                f"[{', '.join(map(str, quorum.voters.by_id))}].",
            )
        address = endpoints.get(quorum.listener)
        if address is None:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"Add voter request didn't include the default listener: {quorum.listener}",
            )
    except Refusal as refusal:
        _answer(quorum, ticket, add_raft_voter.Response, refusal)
        return
    quorum.change = Change(
        ticket,
        add_raft_voter.Response,
        Monotonic(now + request.timeout_ms),
        quorum.voters.plus(Voter(key.id, key.directory_id, endpoints)),
        joins=key,
        address=address,
        answers_when_written=not request.ack_when_committed,
    )
    quorum.send(key.id, address, api_versions.Request("ottla", "0"), now)


def versions_answered(quorum: "Quorum", response: api_versions.Response, now: Monotonic) -> None:
    """The new voter says which kraft.versions it supports."""
    change = quorum.change
    if change is None or change.joins is None or change.address is None:
        return
    change.address = None
    found = [f for f in response.supported_features if f.name == KRAFT_VERSION]
    low, high = (found[0].min_version, found[0].max_version) if found else (0, 0)
    if not low <= quorum.kraft_version <= high:
        _give_up(
            quorum,
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation because the kraft.version range of the voter "
            f"({low} to {high}) does not support {quorum.kraft_version}",
        )
        return
    voter = change.voters.by_id[change.joins.id]
    change.voters = quorum.voters.plus(
        Voter(voter.id, voter.directory_id, voter.endpoints, (low, high))
    )
    _write_if_ready(quorum, now)


def unreachable(quorum: "Quorum", _now: Monotonic) -> None:
    change = quorum.change
    if change is not None and change.joins is not None:
        _give_up(
            quorum,
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for {change.joins.id}: it cannot be reached",
        )


def replica_fetched(quorum: "Quorum", now: Monotonic) -> None:
    if quorum.change is not None:
        _write_if_ready(quorum, now)


def remove_requested(
    quorum: "Quorum", ticket: Ticket, request: remove_raft_voter.Request, now: Monotonic
) -> None:
    key = ReplicaKey(NodeId(request.voter_id), request.voter_directory_id)
    try:
        _check(quorum, request.cluster_id)
        voter = quorum.voters.by_id.get(key.id)
        if voter is None or voter.directory_id != key.directory_id:
            raise Refusal(
                ErrorCode.VOTER_NOT_FOUND,
                f"Cannot remove voter {key.id} from the set of voters "
                f"[{', '.join(map(str, quorum.voters.by_id))}]",
            )
        if quorum.voters.is_alone:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, f"Cannot remove voter {key.id}: it is the last one"
            )
    except Refusal as refusal:
        _answer(quorum, ticket, remove_raft_voter.Response, refusal)
        return
    quorum.change = Change(
        ticket,
        remove_raft_voter.Response,
        Monotonic(now + UPDATE_TIMEOUT_MS),
        quorum.voters.minus(key.id),
    )
    _write(quorum, quorum.change)


def update_requested(
    quorum: "Quorum", ticket: Ticket, request: update_raft_voter.Request, now: Monotonic
) -> None:
    try:
        if request.current_leader_epoch < quorum.state.epoch:
            raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        _check(quorum, request.cluster_id)
        key = ReplicaKey(NodeId(request.voter_id), request.voter_directory_id)
        before = quorum.voters.by_id.get(key.id)
        if before is None or before.directory_id != key.directory_id:
            raise Refusal(ErrorCode.VOTER_NOT_FOUND)
        versions = request.kraft_version_feature
        supported = (versions.min_supported_version, versions.max_supported_version)
        if not supported[0] <= quorum.kraft_version <= supported[1] or not request.listeners:
            raise Refusal(ErrorCode.INVALID_REQUEST)
    except Refusal as refusal:
        _answer(quorum, ticket, update_raft_voter.Response, refusal)
        return
    endpoints = {e.name: Address(e.host, e.port) for e in request.listeners}
    after = Voter(key.id, key.directory_id, endpoints, supported)
    if after == before:
        _answer(quorum, ticket, update_raft_voter.Response)
        return
    quorum.change = Change(
        ticket,
        update_raft_voter.Response,
        Monotonic(now + UPDATE_TIMEOUT_MS),
        quorum.voters.plus(after),
    )
    _write(quorum, quorum.change)


def log_grew(quorum: "Quorum") -> None:
    """The record of the new voters may be in the log now: from here on they count."""
    change = quorum.change
    if change is None or not change.is_written or change.offset is not None:
        return
    if quorum.voters != change.voters:
        return
    change.offset = quorum.history.changed_at
    if change.answers_when_written:
        _answered(quorum, change)


def committed(quorum: "Quorum", now: Monotonic) -> None:
    change, known = quorum.change, quorum.high_watermark or 0
    if change is not None and change.offset is not None and change.offset < known:
        quorum.change = None
        _answered(quorum, change)
    is_left_out = quorum.voters.voter(quorum.key) is None and quorum.history.changed_at < known
    if is_left_out and isinstance(quorum.role, Leader):
        # It led until the others had taken note that it votes no more.
        elections.resign(quorum, quorum.role, now)


def time_passed(quorum: "Quorum", now: Monotonic) -> None:
    change = quorum.change
    if change is None or now < change.give_up_at:
        return
    if change.is_written:
        # What is in the log may still be committed: only the one who asked is let go.
        change.give_up_at = Monotonic(now + UPDATE_TIMEOUT_MS)
        _answered(quorum, change, Refusal(ErrorCode.REQUEST_TIMED_OUT))
    else:
        _give_up(
            quorum,
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation since the voter has not caught up in time",
        )


def stopped_leading(quorum: "Quorum") -> None:
    if quorum.change is not None:
        _give_up(quorum, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)


def _check(quorum: "Quorum", cluster_id: str | None) -> None:
    """What every change needs."""
    if cluster_id is not None and cluster_id != quorum.cluster_id:
        raise Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID)
    leader = quorum.role
    if not isinstance(leader, Leader):
        raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if quorum.kraft_version < DYNAMIC_VERSION:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            "Cluster doesn't support changing the voters: its kraft.version is 0",
        )
    if quorum.change is not None:
        raise Refusal(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    high_watermark = quorum.high_watermark or 0
    if high_watermark <= max(leader.epoch_start_offset, quorum.history.changed_at):
        raise Refusal(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter "
            "changes",
        )


def _write_if_ready(quorum: "Quorum", _now: Monotonic) -> None:
    change, leader = quorum.change, quorum.role
    if change is None or change.is_written or change.address is not None:
        return
    if change.joins is not None and isinstance(leader, Leader):
        replica = leader.replicas.get(change.joins)
        if replica is None or replica.caught_up_at is None:
            return
    _write(quorum, change)


def _write(quorum: "Quorum", change: Change) -> None:
    change.is_written = True
    record = change.voters.to_record()
    quorum.effects.append(AppendControl(quorum.state.epoch, (record,)))


def _give_up(quorum: "Quorum", code: ErrorCode, message: str | None) -> None:
    change, quorum.change = quorum.change, None
    assert change is not None, "there is one to give up"
    _answered(quorum, change, Refusal(code, message))


def _answered(quorum: "Quorum", change: Change, refusal: Refusal | None = None) -> None:
    if change.ticket is not None:
        _answer(quorum, change.ticket, change.response, refusal)
        change.ticket = None


def _answer(
    quorum: "Quorum",
    ticket: Ticket,
    kind: Any,  # noqa: ANN401
    refusal: Refusal | None = None,
) -> None:
    response = kind()
    if refusal is not None:
        response.error_code = refusal.code
        if hasattr(response, "error_message"):
            response.error_message = refusal.message
    if kind is update_raft_voter.Response:
        said = quorum.leadership
        where = quorum.leader_address if said.leader != NOBODY else None
        response.current_leader = update_raft_voter.CurrentLeader(
            said.leader, said.epoch, *(where or ("", 0))
        )
    quorum.answer(ticket, response)
