"""Bugs of a quorum to be switched on, each of which the seeds must find."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.quorum import machine, serving, standing
from ottla.quorum.election_state import ElectionState
from ottla.quorum.leadership import Leader
from ottla.quorum.log_view import Valid
from ottla.quorum.roles import Ballot
from ottla.quorum.voters import Voters
from tests.simulation.quorum_world import Node

Mutant = Callable[[pytest.MonkeyPatch], None]


def votes_twice(patch: pytest.MonkeyPatch) -> None:
    """Forget, at once, for whom it voted."""
    would_grant = standing.would_grant

    def forgetful(role, state, candidate, *, is_pre_vote, up_to_date):  # noqa: ANN001, ANN202
        state = replace(state, voted=-1)
        return would_grant(role, state, candidate, is_pre_vote=is_pre_vote, up_to_date=up_to_date)

    patch.setattr(standing, "would_grant", forgetful)


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
    patch.setattr(serving, "compare", lambda *_: Valid())


def elects_the_ignorant(patch: pytest.MonkeyPatch) -> None:
    """Vote for whoever asks first, however little it has."""
    patch.setattr(standing, "is_up_to_date", lambda *_: True)


def leads_with_too_few(patch: pytest.MonkeyPatch) -> None:
    """Its own vote and one more are enough, in a quorum of any size."""

    def is_won(self: Ballot, voters: Voters) -> bool:
        return len(self.granted.intersection(voters.by_id)) >= min(2, voters.majority)

    patch.setattr(Ballot, "is_won", is_won)


def changes_voters_at_any_time(patch: pytest.MonkeyPatch) -> None:
    """Begin a change of voters before the last one, or anything of this epoch, is committed."""
    add = machine.voter_changes.add_requested
    remove = machine.voter_changes.remove_requested

    def without_waiting(request):  # noqa: ANN001, ANN202
        def requested(quorum, *rest):  # noqa: ANN001, ANN002, ANN202
            quorum.change = None
            request(quorum, *rest)

        return requested

    patch.setattr(machine.voter_changes, "_check", lambda *_: None)
    patch.setattr(machine.voter_changes, "add_requested", without_waiting(add))
    patch.setattr(machine.voter_changes, "remove_requested", without_waiting(remove))


ALL: tuple[Mutant, ...] = (
    votes_twice,
    does_not_sync_votes,
    does_not_sync_what_it_fetched,
    commits_alone,
    forgets_to_truncate,
    elects_the_ignorant,
    leads_with_too_few,
    changes_voters_at_any_time,
)
