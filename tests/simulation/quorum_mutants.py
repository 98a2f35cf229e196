"""Bugs of a quorum to be switched on, each of which the stories must find."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId, Offset
from ottla.quorum import (
    elections,
    follower_fetch,
    leader_fetch,
    machine,
    role_changes,
    voter_changes,
)
from ottla.quorum.effects import Effect, Reply, TruncateTo
from ottla.quorum.election_state import ElectionState
from ottla.quorum.leadership import Leader
from ottla.quorum.log_view import (
    Diverging,
    LogView,
    NeedsSnapshot,
    OffsetAndEpoch,
    Valid,
    compare,
)
from ottla.quorum.machine import Quorum
from ottla.quorum.roles import Ballot, Follower
from ottla.quorum.voters import Voter, Voters
from tests.simulation.quorum_node import Node, PureLog

Mutant = Callable[[pytest.MonkeyPatch], None]


def votes_twice(patch: pytest.MonkeyPatch) -> None:
    """Forget, at once, for whom it voted."""
    would_grant = elections.would_grant

    def forgetful(role, state, candidate, *, is_pre_vote, up_to_date):  # noqa: ANN001, ANN202
        state = replace(state, voted=-1)
        return would_grant(role, state, candidate, is_pre_vote=is_pre_vote, up_to_date=up_to_date)

    patch.setattr(elections, "would_grant", forgetful)


def does_not_sync_votes(patch: pytest.MonkeyPatch) -> None:
    """A crash takes the vote along."""

    def persist(self: Node, state: ElectionState) -> None:
        self.state = state

    patch.setattr(Node, "persist", persist)


def does_not_sync_what_it_fetched(patch: pytest.MonkeyPatch) -> None:
    """A follower asks for more, and so confirms, what a crash can take away."""
    patch.setattr(Node, "sync_fetched", lambda _: None)


def commits_alone(patch: pytest.MonkeyPatch) -> None:
    """The high watermark is what the leader has."""
    patch.setattr(Leader, "majority_end", lambda self, _voters: self.synced_end)


def forgets_to_truncate(patch: pytest.MonkeyPatch) -> None:
    """A follower's log is taken for a part of the leader's if only its end is not past it."""
    patch.setattr(leader_fetch, "compare", lambda *_: Valid())


def elects_the_ignorant(patch: pytest.MonkeyPatch) -> None:
    """Vote for whoever asks first, however little it has."""
    patch.setattr(elections, "is_up_to_date", lambda *_: True)


def leads_with_too_few(patch: pytest.MonkeyPatch) -> None:
    """Its own vote and one more are enough, in a quorum of any size."""

    def is_won(self: Ballot, voters: Voters) -> bool:
        return len(self.granted.intersection(voters.by_id)) >= min(2, voters.majority)

    patch.setattr(Ballot, "is_won", is_won)


def compares_offsets_only(patch: pytest.MonkeyPatch) -> None:
    """A follower diverges only if its log is longer: the epoch of its last entry is ignored."""

    def by_offset(log: LogView, place: OffsetAndEpoch) -> Valid | Diverging | NeedsSnapshot:
        found = compare(log, place)
        is_longer = place.offset > log.end_offset
        return Valid() if isinstance(found, Diverging) and not is_longer else found

    patch.setattr(leader_fetch, "compare", by_offset)


def commits_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """Entries of earlier epochs are committed by counting alone (Raft, figure 8)."""
    patch.setattr(Leader, "committed_end", lambda self, voters: self.majority_end(voters))


def counts_itself_before_it_synced(patch: pytest.MonkeyPatch) -> None:
    """The leader's own entries count when they are appended."""

    def log_grew(quorum: Quorum, leader: Leader, now: Monotonic) -> None:
        leader.synced_end = quorum.log.end_offset
        quorum.advance(now)
        original(quorum, leader, now)

    original = leader_fetch.log_grew
    patch.setattr(leader_fetch, "log_grew", log_grew)


def counts_observers(patch: pytest.MonkeyPatch) -> None:
    """Any replica that has an entry counts towards the majority."""

    def majority_end(self: Leader, voters: Voters) -> Offset:
        ends = [self.synced_end, *(replica.end for replica in self.replicas.values())]
        return sorted(ends, reverse=True)[voters.majority - 1] if len(ends) > 1 else -1

    patch.setattr(Leader, "majority_end", majority_end)


def counts_any_disk(patch: pytest.MonkeyPatch) -> None:
    """A node that came back with an empty disk counts, and votes, as the voter that it was."""
    patch.setattr(Voter, "is_replica", lambda self, key: self.id == key.id)
    patch.setattr(Voters, "has", lambda self, node, _directory: node in self.by_id)
    patch.setattr(elections, "_is_us", lambda *_: True)


def new_leader_truncates(patch: pytest.MonkeyPatch) -> None:
    """A new leader removes the entries of earlier epochs that it does not know as committed."""

    def lead(self: Quorum, epoch: int, granting: list[NodeId], now: Monotonic) -> None:
        if self.log.end_offset > (self.high_watermark or 0) > self.log.log_start_offset:
            self.effects.append(TruncateTo(self.high_watermark or 0))
        original(self, epoch, granting, now)

    original = role_changes.lead
    patch.setattr(role_changes, "lead", lead)


def snapshots_too_much(patch: pytest.MonkeyPatch) -> None:
    """A snapshot of the whole log, committed or not."""
    part = PureLog.part

    def snapshot(self: Node) -> None:
        if self.machine is None or self.log.end_offset <= self.log.log_start_offset:
            return
        whole = tuple(part(self.log, 0, self.log.end_offset))
        place = OffsetAndEpoch(self.log.end_offset, whole[-1].epoch)
        self.log.replace_by_snapshot(place, pickle.dumps(whole))
        self.world.rules.check(self)

    patch.setattr(Node, "snapshot", snapshot)


def replies_before_it_persists(patch: pytest.MonkeyPatch) -> None:
    """Answers leave first, whatever they follow from."""

    def finish(self: Quorum, now: Monotonic) -> list[Effect]:
        effects = original(self, now)
        return sorted(effects, key=lambda effect: not isinstance(effect, Reply))

    original = Quorum._finish
    patch.setattr(Quorum, "_finish", finish)


def believes_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A follower takes the leader's high watermark for its own, however short its log is."""

    def note(quorum: Quorum, role: Follower) -> None:
        if role.leader_high_watermark > (quorum.high_watermark or 0):
            quorum.commit(role.leader_high_watermark)

    patch.setattr(follower_fetch, "_note_high_watermark", note)


def changes_voters_before_its_epoch_commits(patch: pytest.MonkeyPatch) -> None:
    """The single-server bug: only the last change has to be committed, not the new epoch."""

    def check(quorum: Quorum, cluster_id: str | None) -> None:
        leader = quorum.role
        if isinstance(leader, Leader) and quorum.change is None:
            if (quorum.high_watermark or 0) <= quorum.history.changed_at:
                raise Refusal(ErrorCode.REQUEST_TIMED_OUT)
            return
        original(quorum, cluster_id)

    original = voter_changes._check
    patch.setattr(voter_changes, "_check", check)


def changes_voters_at_any_time(patch: pytest.MonkeyPatch) -> None:
    """Begin a change of voters before the last one, or anything of this epoch, is committed."""
    add = machine.voter_changes.add_requested
    remove = machine.voter_changes.remove_requested

    def without_waiting(request):  # noqa: ANN001, ANN202
        def requested(quorum, *rest):  # noqa: ANN001, ANN002, ANN202
            quorum.change = None
            request(quorum, *rest)

        return requested

    patch.setattr(voter_changes, "_check", lambda *_: None)
    patch.setattr(voter_changes, "add_requested", without_waiting(add))
    patch.setattr(voter_changes, "remove_requested", without_waiting(remove))


# A mutant that breaks each rule, by this rule's own check.
OF_RULE: dict[str, Mutant] = {
    "R1": leads_with_too_few,
    "R2": votes_twice,
    "R3": new_leader_truncates,
    "R4": compares_offsets_only,
    "R5": elects_the_ignorant,
    "R6": believes_the_high_watermark,
    "R7": commits_alone,
    "R8": does_not_sync_votes,
    "R9": snapshots_too_much,
    "R10": changes_voters_before_its_epoch_commits,
}

# Within how many stories each has to be found, at most.
STORIES_MAX: dict[Mutant, int] = {
    votes_twice: 30,
    does_not_sync_votes: 30,
    does_not_sync_what_it_fetched: 30,
    commits_alone: 30,
    forgets_to_truncate: 30,
    elects_the_ignorant: 30,
    leads_with_too_few: 30,
    compares_offsets_only: 30,
    commits_earlier_epochs: 50,
    counts_itself_before_it_synced: 30,
    counts_observers: 30,
    counts_any_disk: 50,
    new_leader_truncates: 30,
    snapshots_too_much: 30,
    replies_before_it_persists: 30,
    believes_the_high_watermark: 30,
    changes_voters_before_its_epoch_commits: 30,
    changes_voters_at_any_time: 30,
}
