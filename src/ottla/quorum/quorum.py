"""One node's part in the quorum of the metadata log: a pure machine.

What has to be done returns as effects, in order: a state is durable before what follows it is
acted on. With a single voter an election is one step, since its own vote is the majority; votes
of others arrive with the cluster, by methods of this class.
"""

from dataclasses import dataclass

from ottla.model.types import NodeId, Uuid
from ottla.protocol.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    QuorumControl,
)
from ottla.quorum.election_state import ElectionState
from ottla.quorum.voters import Voters


@dataclass(frozen=True, slots=True)
class PersistState:
    """Write `quorum-state` and sync it, before anything that follows."""

    state: ElectionState


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """This node leads: append these control records, in one batch, as the epoch's first."""

    epoch: int
    records: tuple[QuorumControl, ...]


Effect = PersistState | BeginEpoch


class Quorum:
    def __init__(
        self,
        node_id: NodeId,
        directory_id: Uuid,
        voters: Voters,
        kraft_version: int,
        state: ElectionState,
    ) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.voters = voters
        self.kraft_version = kraft_version
        self.state = state
        # Voters that only the bootstrap snapshot names are not yet in the log.
        self.are_voters_in_log = False

    @property
    def is_leader(self) -> bool:
        return self.state.leader == self.node_id

    def voters_changed(self, voters: Voters) -> None:
        """A voters record was read from the log or from a snapshot of it."""
        self.voters = voters
        self.are_voters_in_log = True

    def log_loaded(self, last_epoch: int) -> list[Effect]:
        """All of the log is read, up to `last_epoch`: stand for election."""
        assert self.voters.has(self.node_id, self.directory_id), "only a voter stands"
        assert self.voters.is_alone, "more than one voter need the others' votes"
        epoch = max(self.state.epoch, last_epoch) + 1
        # Its own vote is the majority, so that voting and leading are written in one step.
        self.state = ElectionState(epoch, self.node_id)
        return [PersistState(self.state), BeginEpoch(epoch, self._first_records())]

    def _first_records(self) -> tuple[QuorumControl, ...]:
        # Kafka's leaders write version 0 of this message, which has no directory ids.
        voters = [LeaderChangeVoter(voter_id=node) for node in self.voters.by_id]
        change = LeaderChangeMessage(
            leader_id=self.node_id,
            voters=voters,
            granting_voters=[LeaderChangeVoter(voter_id=self.node_id)],
        )
        if self.kraft_version == 0 or self.are_voters_in_log:
            return (change,)
        version = KRaftVersionRecord(kraft_version=self.kraft_version)
        return (change, version, self.voters.to_record())
