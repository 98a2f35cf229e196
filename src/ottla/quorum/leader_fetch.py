"""The leader's side of replication: fetches of voters and observers, and pieces of snapshots.

A fetch says how far the follower's disk is, which is what commits; there is no other
acknowledgement. One that finds nothing new waits until the log grows, until more is committed
than the follower knows of, or until its time is over.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.model.machine import Ticket
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import begin_quorum_epoch, fetch, fetch_snapshot
from ottla.quorum import voter_changes
from ottla.quorum.leadership import Leader
from ottla.quorum.log_view import Diverging, NeedsSnapshot, OffsetAndEpoch, Valid, compare
from ottla.quorum.messages import (
    UNKNOWN_HIGH_WATERMARK,
    fetch_response,
    partition_of,
    snapshot_response,
)
from ottla.quorum.voters import ReplicaKey

if TYPE_CHECKING:
    from ottla.quorum.machine import Quorum

CONSUMER = -1


@dataclass(slots=True)
class Parked:
    """A fetch that waits."""

    ticket: Ticket
    part: fetch.FetchPartition
    bytes_max: int
    give_up_at: Monotonic


def fetch_requested(
    quorum: "Quorum", ticket: Ticket, request: fetch.Request, now: Monotonic
) -> None:
    part = partition_of(request)
    error = _error(quorum, request.cluster_id, part.current_leader_epoch)
    replica_id = max(request.replica_state.replica_id, request.replica_id)
    leader = quorum.role
    if error is not None or not isinstance(leader, Leader):
        _refuse(quorum, ticket, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    if part.fetch_offset < 0:
        _refuse(quorum, ticket, ErrorCode.INVALID_REQUEST)
        return
    place = OffsetAndEpoch(part.fetch_offset, part.last_fetched_epoch)
    found = compare(quorum.log, place)
    key = ReplicaKey(NodeId(replica_id), part.replica_directory_id)
    if not isinstance(found, Valid):
        leader.seen(key, now)
        _answer(quorum, ticket, _elsewhere(quorum, found))
        return
    if replica_id != CONSUMER:
        leader.fetched(key, part.fetch_offset, quorum.log.end_offset, now)
        quorum.advance(now)
        voter_changes.replica_fetched(quorum, now)
    if not quorum.is_leader:
        _refuse(quorum, ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    parked = Parked(ticket, part, request.max_bytes, Monotonic(now + request.max_wait_ms))
    if request.max_wait_ms <= 0 or _has_news(quorum, parked):
        _serve(quorum, parked)
    else:
        quorum.parked.append(parked)


def snapshot_requested(
    quorum: "Quorum", ticket: Ticket, request: fetch_snapshot.Request, now: Monotonic
) -> None:
    part = partition_of(request)
    error = _error(quorum, request.cluster_id, part.current_leader_epoch)
    if error is not None or not isinstance(quorum.role, Leader):
        error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
        _answer_snapshot(quorum, ticket, error=error)
        return
    wanted = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
    position = max(part.position, 0)
    found = quorum.log.read_snapshot(wanted, position, max(request.max_bytes, 0))
    if found is None:
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    elif not 0 <= part.position < found[1]:
        error = ErrorCode.POSITION_OUT_OF_RANGE
    if found is None or error is not None:
        _answer_snapshot(quorum, ticket, error=error or ErrorCode.NONE)
        return
    replica = ReplicaKey(NodeId(request.replica_id), part.replica_directory_id)
    quorum.role.seen(replica, now)
    piece, size = found
    data = fetch_snapshot.ResponsePartitionSnapshot(
        index=0,
        snapshot_id=fetch_snapshot.SnapshotId(*wanted),
        size=size,
        position=part.position,
        unaligned_records=piece,
    )
    _answer_snapshot(quorum, ticket, data)


def log_grew(quorum: "Quorum", _leader: Leader, _now: Monotonic) -> None:
    _serve_news(quorum)


def committed(quorum: "Quorum", _now: Monotonic) -> None:
    _serve_news(quorum)


def time_passed(quorum: "Quorum", leader: Leader, now: Monotonic) -> None:
    waiting, quorum.parked = quorum.parked, []
    for parked in waiting:
        if now >= parked.give_up_at:
            _serve(quorum, parked)
        else:
            quorum.parked.append(parked)
    leader.forget_silent_observers(quorum.voters, now)


def stopped_leading(quorum: "Quorum") -> None:
    """Those who wait must look for the next leader."""
    waiting, quorum.parked = quorum.parked, []
    for parked in waiting:
        _refuse(quorum, parked.ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def deadlines(quorum: "Quorum", leader: Leader) -> list[Monotonic]:
    """When a leader has something to do by the clock."""
    times = [parked.give_up_at for parked in quorum.parked]
    lost_at = leader.quorum_lost_at(quorum.voters, quorum.timing.fetch_timeout_ms)
    if lost_at is not None:
        times.append(lost_at)
    after_ms = quorum.timing.fetch_timeout_ms // 2
    return times + [
        leader.to_be_told_at(node, quorum.voters, after_ms)
        for node in quorum.voters.by_id
        if node != leader.key.id and not quorum.outbox.is_waiting(node, begin_quorum_epoch.Request)
    ]


def _serve_news(quorum: "Quorum") -> None:
    waiting, quorum.parked = quorum.parked, []
    for parked in waiting:
        if _has_news(quorum, parked):
            _serve(quorum, parked)
        else:
            quorum.parked.append(parked)


def _has_news(quorum: "Quorum", parked: Parked) -> bool:
    if quorum.log.end_offset > parked.part.fetch_offset:
        return True
    # KIP-1166: a follower that says what it knows of the high watermark hears of more at once.
    knows = parked.part.high_watermark
    return knows != UNKNOWN_HIGH_WATERMARK and _known(quorum) > knows


def _serve(quorum: "Quorum", parked: Parked) -> None:
    log, part = quorum.log, parked.part
    data = fetch.PartitionData(0, high_watermark=_known(quorum))
    data.log_start_offset = log.log_start_offset
    if log.end_offset > part.fetch_offset:
        bytes_max = max(min(parked.bytes_max, part.partition_max_bytes), 0)
        data.records = log.read(part.fetch_offset, bytes_max)
    _answer(quorum, parked.ticket, data)


def _elsewhere(quorum: "Quorum", found: Diverging | NeedsSnapshot) -> fetch.PartitionData:
    """No records: the follower has to cut its log, or to begin with a snapshot."""
    data = fetch.PartitionData(0, high_watermark=_known(quorum))
    data.log_start_offset = quorum.log.log_start_offset
    if isinstance(found, Diverging):
        data.diverging_epoch = fetch.EpochEndOffset(found.end.epoch, found.end.offset)
    else:
        data.snapshot_id = fetch.SnapshotId(found.snapshot.offset, found.snapshot.epoch)
    return data


def _refuse(quorum: "Quorum", ticket: Ticket, error: ErrorCode) -> None:
    _answer(quorum, ticket, error=error)


def _answer(
    quorum: "Quorum",
    ticket: Ticket,
    data: fetch.PartitionData | None = None,
    error: ErrorCode = ErrorCode.NONE,
) -> None:
    response = fetch_response(quorum.leadership, quorum.leader_address, data, error)
    quorum.answer(ticket, response)


def _answer_snapshot(
    quorum: "Quorum",
    ticket: Ticket,
    data: fetch_snapshot.ResponsePartitionSnapshot | None = None,
    error: ErrorCode = ErrorCode.NONE,
) -> None:
    response = snapshot_response(quorum.leadership, quorum.leader_address, data, error)
    quorum.answer(ticket, response)


def _known(quorum: "Quorum") -> int:
    """The high watermark, once this epoch has committed something: -1 before.

    What a new leader knew as a follower may be less than others know, and Kafka's nodes end
    themselves if a high watermark goes back.
    """
    leader, known = quorum.role, quorum.high_watermark
    if not isinstance(leader, Leader) or known is None or known <= leader.epoch_start_offset:
        return -1
    return known


def _error(quorum: "Quorum", cluster_id: str | None, epoch: int) -> ErrorCode | None:
    if cluster_id is not None and cluster_id != quorum.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if epoch < quorum.state.epoch and epoch >= 0:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.state.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return None
