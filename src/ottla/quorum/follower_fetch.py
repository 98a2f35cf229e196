"""The other side of replication: what a voter or an observer does with the leader's answers.

It asks from where its own log ends. The answer is the next batches, a place where the logs part
(cut there and ask again), or the name of a snapshot to begin with. Nothing is asked again before
what came is on disk, for to ask for an offset says that all before it is.
"""

from typing import TYPE_CHECKING, Any

from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import fetch, fetch_snapshot, update_raft_voter
from ottla.quorum import role_changes
from ottla.quorum.effects import (
    AppendFetched,
    InstallSnapshot,
    TruncateTo,
    WriteSnapshotPiece,
)
from ottla.quorum.log_view import OffsetAndEpoch, end, truncation_point
from ottla.quorum.messages import (
    fetch_request,
    leadership_in,
    partition_of,
    snapshot_request,
)
from ottla.quorum.roles import Follower
from ottla.quorum.voters import KRAFT_VERSION_MAX, Address

if TYPE_CHECKING:
    from ottla.quorum.machine import Quorum

FIRST_BOOTSTRAP_ID = -2  # As Kafka numbers servers whose id it does not know: downwards.


def ask_leader(quorum: "Quorum", role: Follower, now: Monotonic) -> None:
    _tell_endpoints(quorum, role, now)
    if role.is_writing:
        return
    if role.snapshot is not None:
        if not quorum.outbox.is_busy(role.leader, fetch_snapshot.Request, now):
            piece = snapshot_request(
                quorum.cluster_id,
                quorum.state.epoch,
                quorum.key,
                role.snapshot,
                role.snapshot_position,
                quorum.timing.snapshot_bytes_max,
            )
            quorum.send(role.leader, role.address, piece, now)
    elif not quorum.outbox.is_busy(role.leader, fetch.Request, now):
        role.asked_at = now
        quorum.send(role.leader, role.address, _fetch(quorum), now)


def ask_around(quorum: "Quorum", now: Monotonic) -> None:
    """Find the leader: any controller that we know of can say who it is."""
    known: dict[NodeId, Address] = {
        NodeId(FIRST_BOOTSTRAP_ID - index): address
        for index, address in enumerate(quorum.bootstrap)
    }
    for voter in quorum.voters.by_id.values():
        address = voter.address(quorum.listener)
        if address is not None and voter.id != quorum.key.id:
            known[voter.id] = address
    for node, address in known.items():
        if not quorum.outbox.is_busy(node, fetch.Request, now):
            quorum.send(node, address, _fetch(quorum), now)


def fetch_answered(
    quorum: "Quorum", source: NodeId, response: fetch.Response, now: Monotonic
) -> None:
    part = partition_of(response)
    said = leadership_in(part)
    before = quorum.role
    role_changes.learn(quorum, said, response, now)
    role = quorum.role
    if role is not before or not isinstance(role, Follower) or source != role.leader:
        quorum.outbox.retry_later(source, fetch.Request, now)
        return
    if part.error_code:
        quorum.outbox.retry_later(source, fetch.Request, now)
        if part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader_silent(quorum, role, now, is_closed=True)
        return
    if said.epoch != quorum.state.epoch:
        return
    _leader_lives(quorum, role, now)
    if part.diverging_epoch.epoch >= 0 or part.snapshot_id.epoch >= 0:
        role.asked_at = None  # We are behind, and do not know how far.
    if part.diverging_epoch.epoch >= 0:
        parting = OffsetAndEpoch(part.diverging_epoch.end_offset, part.diverging_epoch.epoch)
        offset = truncation_point(quorum.log, parting)
        assert offset >= (quorum.high_watermark or 0), "what is committed is never cut away"
        role.is_writing = True
        quorum.effects.append(TruncateTo(offset))
    elif part.snapshot_id.epoch >= 0:
        role.snapshot = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        role.snapshot_position = 0
    else:
        # Only now is our log known to be a part of the leader's.
        role.leader_high_watermark = max(role.leader_high_watermark, part.high_watermark)
        if part.records:
            role.is_writing = True
            quorum.effects.append(AppendFetched(bytes(part.records)))
        else:
            _note_high_watermark(quorum, role)


def written(quorum: "Quorum", role: Follower, now: Monotonic) -> None:
    """What was fetched is on disk, or what had to be cut is cut."""
    role.is_writing = False
    role.give_up_at = Monotonic(now + quorum.timing.fetch_timeout_ms)
    _note_high_watermark(quorum, role)


def not_written(quorum: "Quorum", role: Follower, now: Monotonic) -> None:
    """It could not be written, or was no part of a log: ask again in a moment."""
    role.is_writing = False
    quorum.outbox.retry_later(role.leader, fetch.Request, now)


def snapshot_answered(
    quorum: "Quorum", source: NodeId, response: fetch_snapshot.Response, now: Monotonic
) -> None:
    part = partition_of(response)
    before = quorum.role
    role_changes.learn(quorum, leadership_in(part), response, now)
    role = quorum.role
    is_current = role is before and isinstance(role, Follower) and source == role.leader
    if not is_current or not isinstance(role, Follower) or role.snapshot is None:
        return
    if part.error_code:
        # The snapshot may have been replaced by a newer one: a fetch tells which.
        role.snapshot = None
        quorum.outbox.retry_later(source, fetch.Request, now)
        return
    _leader_lives(quorum, role, now)
    snapshot = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
    if snapshot != role.snapshot or part.position != role.snapshot_position:
        return
    data = bytes(part.unaligned_records)
    quorum.effects.append(WriteSnapshotPiece(snapshot, part.position, data))
    role.snapshot_position += len(data)
    if role.snapshot_position >= part.size:
        role.is_writing = True
        quorum.effects.append(InstallSnapshot(snapshot))


def snapshot_installed(quorum: "Quorum", now: Monotonic) -> None:
    installed, role = quorum.log.newest_snapshot, quorum.role
    assert installed is not None, "the snapshot that was installed is there"
    # A snapshot holds only what is committed, under whichever leader.
    if installed.offset > (quorum.high_watermark or 0):
        quorum.commit(installed.offset)
    if isinstance(role, Follower):
        role.snapshot, role.snapshot_position = None, 0
        written(quorum, role, now)


def leader_silent(quorum: "Quorum", role: Follower, now: Monotonic, *, is_closed: bool) -> None:
    """A fetch failed. A closed connection hints that the leader's process is gone.

    To be wrong about it costs a pre-vote, which those who hear the leader refuse.
    """
    if not is_closed:
        return
    others = sorted(set(quorum.voters.by_id) - {role.leader})
    if quorum.is_voter:
        place = others.index(quorum.key.id)
        delay = quorum.timing.turn(quorum.below, quorum.elections_lost, place)
    else:
        delay = 0 if role.has_fetched else quorum.timing.retry_backoff_ms
    stand_at = Monotonic(now + delay)
    role.stand_at = min(role.stand_at or stand_at, stand_at)


def _leader_lives(quorum: "Quorum", role: Follower, now: Monotonic) -> None:
    role.has_fetched = True
    role.stand_at = None
    role.give_up_at = Monotonic(now + quorum.timing.fetch_timeout_ms)
    quorum.elections_lost = 0


def _note_high_watermark(quorum: "Quorum", role: Follower) -> None:
    reached = min(role.leader_high_watermark, quorum.log.end_offset)
    if reached > (quorum.high_watermark or 0):
        quorum.commit(reached)
    if reached == role.leader_high_watermark >= 0:
        role.known_at = role.asked_at


def _fetch(quorum: "Quorum") -> fetch.Request:
    return fetch_request(
        quorum.cluster_id,
        quorum.state.epoch,
        quorum.key,
        end(quorum.log),
        quorum.high_watermark if quorum.high_watermark is not None else -1,
        wait_ms=quorum.timing.fetch_wait_ms,
        bytes_max=quorum.timing.fetch_bytes_max,
    )


def _tell_endpoints(quorum: "Quorum", role: Follower, now: Monotonic) -> None:
    """A voter whose address or versions the log does not know tells the leader (KIP-853)."""
    if quorum.kraft_version < 1 or not quorum.is_voter or not quorum.endpoints:
        return
    voter = quorum.voters.by_id[quorum.key.id]
    is_known = dict(voter.endpoints) == dict(quorum.endpoints)
    if is_known and voter.kraft_versions == (0, KRAFT_VERSION_MAX):
        role.update_at = None
        return
    if role.update_at is not None and now < role.update_at:
        return
    role.update_at = Monotonic(now + quorum.timing.fetch_timeout_ms)
    request = update_raft_voter.Request(
        cluster_id=quorum.cluster_id,
        current_leader_epoch=quorum.state.epoch,
        voter_id=quorum.key.id,
        voter_directory_id=quorum.key.directory_id,
        listeners=[
            update_raft_voter.Listener(name, *address) for name, address in quorum.endpoints.items()
        ],
        kraft_version_feature=update_raft_voter.KRaftVersionFeature(0, KRAFT_VERSION_MAX),
    )
    quorum.send(role.leader, role.address, request, now)


def update_answered(quorum: "Quorum", response: Any, now: Monotonic) -> None:  # noqa: ANN401
    """The voters record that follows from it comes with the log; else it is told again."""
    role_changes.learn(quorum, leadership_in(response), response, now)
