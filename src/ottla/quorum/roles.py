"""The parts that a node can have in the quorum beside leading, and whom each would vote for.

A part says what its node waits for and until when. The epoch, the known leader and the vote are in
`ElectionState`, which is durable; what is here is forgotten with the process.
"""

from dataclasses import dataclass, field

from ottla.model.types import Monotonic, NodeId, Offset, Uuid
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.voters import Address, ReplicaKey, Voters


@dataclass(slots=True)
class Unattached:
    """Follows nobody: a voter stands when the time is over, an observer asks around."""

    stand_at: Monotonic

    def deadlines(self) -> list[Monotonic]:
        return [self.stand_at]


@dataclass(slots=True)
class Follower:
    leader: NodeId
    address: Address
    give_up_at: Monotonic  # Unless a fetch succeeds before.
    has_fetched: bool = False  # From this leader: then it is alive, and pre-votes are denied.
    stand_at: Monotonic | None = None  # A hint that the leader is gone: earlier than `give_up_at`.
    is_writing: bool = False  # What was fetched is on its way to the disk.
    snapshot: OffsetAndEpoch | None = None  # Being fetched, since the leader's log begins later.
    snapshot_position: int = 0
    leader_high_watermark: Offset = -1  # As far as its answers said; our log may end before.
    asked_at: Monotonic | None = None  # When the fetch was sent that said so.
    known_at: Monotonic | None = None  # All that was committed by then is known to be so.
    update_at: Monotonic | None = None  # When to tell the leader again where we listen.

    def deadlines(self) -> list[Monotonic]:
        return [self.give_up_at, *filter(None, (self.stand_at, self.update_at))]


@dataclass(slots=True)
class Ballot:
    """What prospectives and candidates share: who was asked, and what they said."""

    give_up_at: Monotonic
    granted: set[NodeId] = field(default_factory=set)
    rejected: set[NodeId] = field(default_factory=set)
    unreachable: set[NodeId] = field(default_factory=set)
    is_lost: bool = False  # `give_up_at` is the end of a pause then.

    def deadlines(self) -> list[Monotonic]:
        return [self.give_up_at]

    def is_won(self, voters: Voters) -> bool:
        return len(self.granted.intersection(voters.by_id)) >= voters.majority

    def is_beyond_hope(self, voters: Voters) -> bool:
        """A node that cannot be reached will not vote; waiting for it would only cost time."""
        open_ = set(voters.by_id) - self.rejected - self.unreachable
        return len(open_) < voters.majority

    def is_rejected(self, voters: Voters) -> bool:
        return len(set(voters.by_id) - self.rejected) < voters.majority


@dataclass(slots=True)
class Prospective(Ballot):
    """Asks whether it would be elected, without raising the epoch (KIP-996)."""

    # Only a hint says that the leader is gone: before others' votes count, it may answer itself.
    doubted: NodeId | None = None
    doubted_until: Monotonic | None = None

    def deadlines(self) -> list[Monotonic]:
        return [self.give_up_at, *filter(None, (self.doubted_until,))]

    def is_checking(self, now: Monotonic) -> bool:
        if self.doubted_until is not None and now >= self.doubted_until:
            self.doubted = self.doubted_until = None  # It had its time.
        heard = self.granted | self.rejected | self.unreachable
        return self.doubted is not None and self.doubted not in heard


@dataclass(slots=True)
class Candidate(Ballot):
    """Has voted for itself, in an epoch of its own."""


@dataclass(slots=True)
class Resigned:
    """Led this epoch, and tells the voters that it does not any more."""

    stand_at: Monotonic
    untold: set[NodeId]
    successors: tuple[ReplicaKey, ...]
    is_leaving: bool = False  # The process stops: it will not stand again.

    def deadlines(self) -> list[Monotonic]:
        return [] if self.is_leaving else [self.stand_at]


Role = Unattached | Follower | Prospective | Candidate | Resigned


def would_grant(
    role: object,
    state: ElectionState,
    candidate: ReplicaKey,
    *,
    is_pre_vote: bool,
    up_to_date: bool,
) -> bool:
    """Whether this node may vote for the candidate, in the epoch that both are in."""
    if is_pre_vote:
        if isinstance(role, Follower):
            is_in_doubt = role.stand_at is not None  # The leader closed our connection, too.
            return up_to_date and (is_in_doubt or not role.has_fetched)
        # Whoever leads will not help to end it; all others only say whether they could.
        return up_to_date and isinstance(role, Unattached | Prospective | Candidate | Resigned)
    if state.leader != NOBODY:
        return False  # This epoch has a leader; the vote that made it may be ours.
    if state.voted != NOBODY:
        return state.voted == candidate.id and _is_disk(state.voted_directory_id, candidate)
    return up_to_date


def _is_disk(voted: Uuid, candidate: ReplicaKey) -> bool:
    return not any(voted) or voted == candidate.directory_id
