"""Elections, told as scenes."""

from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import begin_quorum_epoch, fetch, vote
from ottla.quorum.effects import BeginEpoch, PersistState
from ottla.quorum.election_state import ElectionState
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.messages import (
    Leadership,
    begin_request,
    begin_response,
    end_request,
    partition_of,
    vote_request,
    vote_response,
)
from ottla.quorum.roles import Candidate, Follower, Prospective, Unattached
from tests.unit.quorum.scene import CLUSTER, Stage, address, key

NOBODY = NodeId(-1)


def granted(epoch: int) -> vote.Response:
    return vote_response(Leadership(epoch, NOBODY), None, granted=True)


def rejected(epoch: int, leader: int = -1) -> vote.Response:
    where = address(leader) if leader > 0 else None
    return vote_response(Leadership(epoch, NodeId(leader)), where)


def standing() -> Stage:
    stage = Stage()
    stage.start()
    stage.wait(100)
    assert isinstance(stage.quorum.role, Prospective)
    return stage


def test_a_majority_of_pre_votes_makes_a_candidate_and_of_votes_a_leader() -> None:
    stage = standing()
    effects = stage.answer(stage.requests(vote.Request, to=2)[0], granted(0))
    assert PersistState(ElectionState(1, NOBODY, NodeId(1), key(1).directory_id)) in effects
    real = stage.requests(vote.Request, to=3)[0]
    assert not partition_of(real).pre_vote
    effects = stage.answer(real, granted(1))
    assert any(isinstance(effect, BeginEpoch) for effect in effects)
    told = stage.requests(begin_quorum_epoch.Request)
    assert {partition_of(request).leader_epoch for request in told} == {1}
    assert len(told) == 2


def test_a_candidate_that_cannot_win_pauses_and_then_asks_again() -> None:
    stage = standing()
    stage.answer(stage.requests(vote.Request, to=2)[0], granted(0))
    assert isinstance(stage.quorum.role, Candidate)
    stage.answer(stage.requests(vote.Request, to=2)[0], rejected(1))
    assert not stage.quorum.role.is_lost
    # The third is dead: waiting for its vote would only cost time.
    stage.fail(stage.requests(vote.Request, to=3)[0], is_closed=True)
    assert stage.quorum.role.is_lost
    stage.wait(200)
    assert isinstance(stage.quorum.role, Prospective)
    assert stage.quorum.state.epoch == 1


def test_a_closed_connection_of_the_leader_is_taken_as_a_hint() -> None:
    stage = Stage()
    stage.led_by(2, 5)
    stage.fail(stage.requests(fetch.Request, to=2)[0], is_closed=True)
    stage.wait(99)  # Not two seconds, as for a leader that is only silent.
    assert isinstance(stage.quorum.role, Prospective)
    stage.answer(stage.requests(vote.Request, to=3)[0], granted(5))
    assert isinstance(stage.quorum.role, Prospective)  # The leader may still say that it lives.
    stage.fail(stage.requests(vote.Request, to=2)[0], is_closed=True)
    assert isinstance(stage.quorum.role, Candidate)


def test_a_false_hint_ends_with_the_leaders_word() -> None:
    stage = Stage()
    stage.led_by(2, 5)
    stage.fail(stage.requests(fetch.Request, to=2)[0], is_closed=True)
    stage.wait(99)
    stage.answer(stage.requests(vote.Request, to=3)[0], granted(5))
    stage.answer(stage.requests(vote.Request, to=2)[0], rejected(5, leader=2))
    assert isinstance(stage.quorum.role, Follower)
    assert stage.quorum.state.epoch == 5


def test_a_false_hint_ends_with_the_word_of_those_who_hear_the_leader() -> None:
    stage = Stage(among=(1, 2, 3, 4, 5))
    stage.led_by(2, 5)
    stage.fail(stage.requests(fetch.Request, to=2)[0], is_closed=True)
    stage.wait(99)
    for node in (3, 4, 5):
        stage.answer(stage.requests(vote.Request, to=node)[0], rejected(5, leader=2))
    now = stage.now
    assert stage.quorum.role == Follower(NodeId(2), address(2), give_up_at=now + 2000, asked_at=now)


def test_a_silent_leader_keeps_its_full_time() -> None:
    stage = Stage()
    stage.led_by(2, 5)
    stage.fail(stage.requests(fetch.Request, to=2)[0], is_closed=False)
    stage.wait(1900)
    assert isinstance(stage.quorum.role, Follower)
    stage.wait(100)
    assert isinstance(stage.quorum.role, Prospective)


def test_votes_of_a_past_epoch_are_fenced_and_later_ones_taken_note_of() -> None:
    stage = Stage(state=ElectionState(5))
    stage.start()
    assert stage.vote(2, 4, (9, 9)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    answer = stage.vote(2, 7, (9, 9))
    assert (answer.vote_granted, answer.leader_epoch) == (True, 7)
    assert not stage.vote(3, 7, (9, 9)).vote_granted


def test_whoever_knows_less_gets_no_vote() -> None:
    stage = Stage(epochs=[1, 1, 2])
    stage.start()
    assert not stage.vote(2, 3, (2, 2)).vote_granted
    assert not stage.vote(2, 3, (9, 1)).vote_granted
    assert stage.vote(2, 3, (3, 2)).vote_granted


def test_a_request_for_another_voter_or_cluster_is_refused() -> None:
    stage = Stage()
    stage.start()
    wrong = vote_request(CLUSTER, 1, key(2), key(3), OffsetAndEpoch(0, 0), pre_vote=False)
    assert partition_of(stage.ask(wrong)).error_code == ErrorCode.INVALID_VOTER_KEY
    stranger = begin_request("other", Leadership(9, NodeId(2)), key(1), {})
    refused = partition_of(stage.ask(stranger))
    assert refused.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert stage.quorum.state.epoch == 0


def test_a_leader_is_told_to_those_who_were_silent_only() -> None:
    stage = Stage()
    stage.elect()
    for node in (2, 3):
        request = stage.requests(begin_quorum_epoch.Request, to=node)[0]
        stage.answer(request, begin_response(stage.quorum.leadership, address(1)))
    told = {node: len(stage.requests(begin_quorum_epoch.Request, to=node)) for node in (2, 3)}
    for _ in range(3):
        stage.fetch(2, 0, 0)
        stage.wait(900)
    assert len(stage.requests(begin_quorum_epoch.Request, to=2)) == told[2]
    assert len(stage.requests(begin_quorum_epoch.Request, to=3)) > told[3]


def test_when_a_leader_resigns_the_first_it_names_stands_at_once() -> None:
    for order, role in (([1, 3], Prospective), ([3, 1], Unattached)):
        stage = Stage()
        stage.led_by(2, 5)
        said = Leadership(5, NodeId(2))
        stage.ask(end_request(CLUSTER, said, [key(node) for node in order], {}))
        assert isinstance(stage.quorum.role, role)
        stage.wait(200)
        assert isinstance(stage.quorum.role, Prospective)


def test_a_new_leader_is_learnt_from_any_answer() -> None:
    stage = standing()
    stage.answer(stage.requests(vote.Request, to=3)[0], rejected(8, leader=2))
    assert stage.quorum.state == ElectionState(8, NodeId(2))
    assert isinstance(stage.quorum.role, Follower)
