"""Whom a node would vote for, in each of its parts."""

import pytest

from ottla.model.types import Monotonic, NodeId
from ottla.quorum.election_state import ElectionState
from ottla.quorum.leadership import Leader
from ottla.quorum.roles import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Role,
    Unattached,
    would_grant,
)
from tests.unit.quorum.scene import address, key, voters

NOW = Monotonic(0)
FRESH = ElectionState(3)
LEADER = Leader(key(1), 3, 0, NOW, ())


@pytest.mark.parametrize(
    ("role", "granted"),
    [
        (Unattached(NOW), True),
        (Prospective(NOW), True),
        (Candidate(NOW), True),
        (Resigned(NOW, set(), ()), True),
        (Follower(NodeId(2), address(2), NOW), True),  # It has not heard of its leader yet.
        (Follower(NodeId(2), address(2), NOW, has_fetched=True), False),
        (Follower(NodeId(2), address(2), NOW, has_fetched=True, stand_at=NOW), True),  # In doubt.
        (LEADER, False),
    ],
)
def test_a_pre_vote_is_refused_by_those_who_hear_the_leader(
    role: Role | Leader, granted: bool
) -> None:
    for up_to_date in (True, False):
        given = would_grant(role, FRESH, key(3), is_pre_vote=True, up_to_date=up_to_date)
        assert given is (granted and up_to_date)


@pytest.mark.parametrize(
    ("state", "up_to_date", "granted"),
    [
        (FRESH, True, True),
        (FRESH, False, False),
        (ElectionState(3, voted=NodeId(3), voted_directory_id=key(3).directory_id), False, True),
        (ElectionState(3, voted=NodeId(3), voted_directory_id=key(9).directory_id), True, False),
        (ElectionState(3, voted=NodeId(2)), True, False),
        (ElectionState(3, leader=NodeId(2)), True, False),
        (ElectionState(3, leader=NodeId(3)), True, False),
    ],
)
def test_a_vote_is_given_once_in_an_epoch(
    state: ElectionState, up_to_date: bool, granted: bool
) -> None:
    given = would_grant(Unattached(NOW), state, key(3), is_pre_vote=False, up_to_date=up_to_date)
    assert given is granted


def test_a_ballot_is_over_when_nobody_is_left_who_could_turn_it() -> None:
    five = voters(1, 2, 3, 4, 5)
    ballot = Candidate(NOW, granted={NodeId(1), NodeId(2)})
    assert not ballot.is_won(five)
    ballot.rejected = {NodeId(3)}
    ballot.unreachable = {NodeId(4)}
    assert not ballot.is_beyond_hope(five)
    ballot.unreachable = {NodeId(4), NodeId(5)}
    assert ballot.is_beyond_hope(five)
    assert not ballot.is_rejected(five)
    ballot.granted.add(NodeId(9))  # Whoever is no voter does not count.
    assert not ballot.is_won(five)


def test_a_doubted_leader_gets_its_time_to_answer() -> None:
    ballot = Prospective(Monotonic(900), doubted=NodeId(2), doubted_until=Monotonic(100))
    assert ballot.is_checking(Monotonic(50))
    assert ballot.deadlines() == [900, 100]
    assert not ballot.is_checking(Monotonic(100))
    assert ballot.deadlines() == [900]
    again = Prospective(Monotonic(900), doubted=NodeId(2), doubted_until=Monotonic(100))
    again.unreachable.add(NodeId(2))
    assert not again.is_checking(Monotonic(50))
