"""What the quorum's leader knows: how far each replica is, what is committed, who still listens.

An offset is committed when a majority of the voters has it on disk and the leader's own epoch
reaches below it: an entry of an earlier epoch is never committed by counting alone (Raft, 5.4.2).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ottla.model.types import Millis, Monotonic, NodeId, Offset
from ottla.protocol.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    QuorumControl,
)
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import ReplicaKey, Voters

OBSERVER_FORGOTTEN_AFTER_MS: Millis = 5 * 60 * 1000
CHECK_QUORUM_FACTOR = 1.5


@dataclass(slots=True)
class Replica:
    end: Offset = -1  # It has everything below on disk; -1 while nobody knows.
    fetched_at: Monotonic | None = None
    faithful_at: Monotonic | None = None  # When it still followed us, for sure.
    caught_up_at: Monotonic | None = None
    our_end: Offset = -1  # Where our log ended when it fetched last.


@dataclass(slots=True)
class Leader:
    key: ReplicaKey
    epoch: int
    epoch_start_offset: Offset  # Of the epoch's first record.
    since: Monotonic
    granting: tuple[NodeId, ...]
    synced_end: Offset = 0
    replicas: dict[ReplicaKey, Replica] = field(default_factory=dict)
    told_at: dict[NodeId, Monotonic] = field(default_factory=dict)  # BeginQuorumEpoch, last sent.

    def fetched(self, key: ReplicaKey, offset: Offset, our_end: Offset, now: Monotonic) -> None:
        """A replica asks for `offset`, so that it has everything below on disk."""
        replica = self.replicas.setdefault(key, Replica())
        # This fetch may have waited for us; but it was sent after the one before was answered.
        replica.faithful_at = replica.fetched_at
        if offset >= our_end:
            replica.caught_up_at = now
        elif offset >= replica.our_end >= 0:
            replica.caught_up_at = replica.fetched_at
        replica.end, replica.fetched_at, replica.our_end = offset, now, our_end

    def seen(self, key: ReplicaKey, now: Monotonic) -> None:
        """It fetches a snapshot, or acknowledges the epoch: it listens."""
        self.replicas.setdefault(key, Replica()).fetched_at = now

    def majority_end(self, voters: Voters) -> Offset:
        """What a majority of the voters has."""
        ends = sorted((self._end_of(node, voters) for node in voters.by_id), reverse=True)
        return ends[voters.majority - 1]

    def committed_end(self, voters: Voters) -> Offset | None:
        """The high watermark that follows from it; None while this epoch has committed nothing."""
        end = self.majority_end(voters)
        return end if end > self.epoch_start_offset else None

    def quorum_lost_at(self, voters: Voters, fetch_timeout_ms: Millis) -> Monotonic | None:
        """When too few voters will have been heard for too long to go on leading."""
        heard_at = self._majority_at(voters, lambda replica: replica.fetched_at)
        if heard_at is None:
            return None
        return Monotonic(int(heard_at + fetch_timeout_ms * CHECK_QUORUM_FACTOR))

    def followed_at(self, voters: Voters, now: Monotonic) -> Monotonic:
        """When a majority followed us for sure, so that nobody else decided anything until then."""
        followed_at = self._majority_at(voters, lambda replica: replica.faithful_at)
        return now if followed_at is None else followed_at

    def unheard(self, voters: Voters, after_ms: Millis, now: Monotonic) -> Iterator[NodeId]:
        """The voters to be told of this epoch (again): they have not fetched for a while."""
        for node in voters.by_id:
            heard_at = self._last_contact(node, voters)
            if node != self.key.id and (heard_at is None or now - heard_at >= after_ms):
                yield node

    def to_be_told_at(self, node: NodeId, voters: Voters, after_ms: Millis) -> Monotonic:
        heard_at = self._last_contact(node, voters)
        return self.since if heard_at is None else Monotonic(heard_at + after_ms)

    def successors(self, voters: Voters) -> tuple[ReplicaKey, ...]:
        """The other voters, the one with the most of the log first."""
        others = [voter for voter in voters.by_id.values() if voter.id != self.key.id]
        others.sort(key=lambda voter: (-self._end_of(voter.id, voters), voter.id))
        return tuple(ReplicaKey(voter.id, voter.directory_id) for voter in others)

    def forget_silent_observers(self, voters: Voters, now: Monotonic) -> None:
        for key, replica in list(self.replicas.items()):
            is_silent = (
                replica.fetched_at is None or now - replica.fetched_at > OBSERVER_FORGOTTEN_AFTER_MS
            )
            if is_silent and voters.voter(key) is None:
                del self.replicas[key]

    def replica_of(self, node: NodeId, voters: Voters) -> Replica:
        """What is known of a voter, this node itself left out."""
        return self._voter(node, voters) or Replica()

    def _end_of(self, node: NodeId, voters: Voters) -> Offset:
        if node == self.key.id:
            return self.synced_end
        replica = self._voter(node, voters)
        return replica.end if replica is not None else -1

    def _last_contact(self, node: NodeId, voters: Voters) -> Monotonic | None:
        replica = self._voter(node, voters)
        fetched_at = replica.fetched_at if replica is not None else None
        times = [time for time in (fetched_at, self.told_at.get(node)) if time is not None]
        return max(times, default=None)

    def _majority_at(
        self, voters: Voters, at: Callable[[Replica], Monotonic | None]
    ) -> Monotonic | None:
        """The latest time that holds for a majority, us included; None if we need nobody else."""
        needed = voters.majority - (voters.voter(self.key) is not None)
        if needed <= 0:
            return None
        times = [
            max(at(self.replica_of(node, voters)) or self.since, self.since)
            for node in voters.by_id
            if node != self.key.id
        ]
        times.sort(reverse=True)
        return times[needed - 1] if len(times) >= needed else self.since

    def _voter(self, node: NodeId, voters: Voters) -> Replica | None:
        voter = voters.by_id[node]
        found = [replica for key, replica in self.replicas.items() if voter.is_replica(key)]
        # Where voters have no disks, a node that came back with another one counts as it is now.
        return max(found, key=lambda replica: replica.fetched_at or 0, default=None)


def first_records(
    node: NodeId, history: VoterHistory, granting: Sequence[NodeId]
) -> tuple[QuorumControl, ...]:
    """What a new leader writes first; the very first one also the voters that it was given."""
    # Kafka's leaders write version 0 of this message, which has no directory ids.
    change = LeaderChangeMessage(
        leader_id=node,
        voters=[LeaderChangeVoter(voter_id=voter) for voter in history.voters.by_id],
        granting_voters=[LeaderChangeVoter(voter_id=voter) for voter in sorted(granting)],
    )
    if history.kraft_version == 0 or history.are_voters_in_log:
        return (change,)
    version = KRaftVersionRecord(kraft_version=history.kraft_version)
    return (change, version, history.voters.to_record())
