"""A node's whole part: how it starts, whom it takes for the leader, when it wants to be woken."""

import pytest

from ottla.model.types import NodeId
from ottla.protocol.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
)
from ottla.protocol.messages import end_quorum_epoch, fetch, vote
from ottla.quorum.effects import BeginEpoch, Committed, EndEpoch, PersistState
from ottla.quorum.election_state import ElectionState
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.messages import (
    Leadership,
    Misplaced,
    address_in,
    fetch_response,
    partition_of,
    snapshot_request,
    vote_response,
)
from ottla.quorum.roles import Follower, Prospective, Resigned, Unattached
from tests.unit.quorum.scene import Stage, address, key, voters

ONE, TWO, NOBODY = NodeId(1), NodeId(2), NodeId(-1)


def test_alone_the_epoch_is_durable_before_its_first_record_and_commits_at_once() -> None:
    stage = Stage(among=[1])
    persist, begin, committed = stage.start()
    assert persist == PersistState(ElectionState(1, ONE))
    assert isinstance(begin, BeginEpoch)
    change = LeaderChangeMessage(0, 1, [LeaderChangeVoter(1)], [LeaderChangeVoter(1)])
    # The first epoch writes down the voters that only the first snapshot knew.
    assert begin.records == (change, KRaftVersionRecord(kraft_version=1), voters(1).to_record())
    assert committed == Committed(3)
    assert stage.quorum.next_deadline() is None  # An idle disk may sleep.


@pytest.mark.parametrize(("known", "in_log", "epoch"), [(4, 2, 5), (2, 4, 5), (0, 0, 1)])
def test_alone_the_next_epoch_is_above_file_and_log(known: int, in_log: int, epoch: int) -> None:
    stage = Stage(among=[1], epochs=[in_log] if in_log else [], state=ElectionState(known))
    stage.start()
    assert (stage.quorum.is_leader, stage.quorum.state.epoch) == (True, epoch)


def test_a_voter_that_starts_stands_soon_and_does_not_raise_the_epoch_for_it() -> None:
    stage = Stage()
    assert stage.start() == []
    effects = stage.wait(100)
    assert isinstance(stage.quorum.role, Prospective)
    assert not any(isinstance(effect, PersistState) for effect in effects)
    assert [partition_of(r).pre_vote for r in stage.requests(vote.Request)] == [True, True]


def test_a_node_that_led_before_it_was_restarted_claims_nothing() -> None:
    stage = Stage(state=ElectionState(4, ONE))
    stage.start()
    assert isinstance(stage.quorum.role, Unattached)
    assert stage.quorum.leadership == Leadership(4, NOBODY)
    assert not stage.vote(2, 4, (9, 9)).vote_granted  # Its own epoch has had its leader.
    assert stage.vote(2, 5, (9, 9)).vote_granted


def test_a_restarted_follower_goes_on_with_the_leader_it_knew() -> None:
    stage = Stage(state=ElectionState(4, TWO))
    stage.start()
    assert isinstance(stage.quorum.role, Follower)
    assert partition_of(stage.requests(fetch.Request, to=2)[0]).current_leader_epoch == 4


def test_voter_follows_a_leader_known_by_id_once_a_response_gives_its_address() -> None:
    """Node 4 became a voter and the leader; the log of this node ends before that record."""
    stage = Stage(state=ElectionState(4, NodeId(4)))
    stage.start()
    stage.wait(100)
    for node in (2, 3):  # Both receive the leader's heartbeats and refuse the pre-vote.
        request = stage.requests(vote.Request, to=node)[0]
        stage.answer(request, vote_response(Leadership(4, NodeId(4)), None))
    assert isinstance(stage.quorum.role, Prospective)
    stage.wait(1)
    request = stage.requests(fetch.Request, to=2)[0]  # The lost ballot makes it ask the voters.
    stage.answer(request, fetch_response(Leadership(4, NodeId(4)), address(4), error=6))
    assert stage.quorum.state == ElectionState(4, NodeId(4))
    assert isinstance(stage.quorum.role, Follower)
    assert (stage.sent[-1].to, stage.sent[-1].address) == (4, address(4))


def test_every_answer_of_the_leader_gives_its_address() -> None:
    stage = Stage()
    stage.elect()
    stage.fetch(2, 0, 0)
    assert address_in(stage.replies[-1], ONE) == address(1)
    stage.fetch(2, 3, 7)  # Diverging: epoch 7 is not in the leader's log.
    assert address_in(stage.replies[-1], ONE) == address(1)
    snapshot = snapshot_request("c", 1, key(2), OffsetAndEpoch(9, 1), 0, 100)
    assert address_in(stage.ask(snapshot), ONE) == address(1)


def test_an_observer_asks_around_until_it_knows_the_leader() -> None:
    stage = Stage(among=[2, 3], is_controller=False, endpoints={})
    stage.start()
    assert [send.to for send in stage.sent] == [-2, 2, 3]
    first = stage.sent[0].request
    stage.answer(first, fetch_response(Leadership(6, TWO), address(2), error=6))
    assert stage.quorum.role == Follower(TWO, address(2), give_up_at=3000, asked_at=1000)
    assert stage.sent[-1].address == address(2)
    stage.wait(2000)  # Silent for too long: ask around again, but never stand.
    assert isinstance(stage.quorum.role, Unattached)
    assert not stage.requests(vote.Request)


def test_a_leader_of_which_too_few_hear_resigns_and_says_so() -> None:
    stage = Stage()
    stage.elect()
    effects = stage.wait(3000)
    assert EndEpoch(1) in effects
    assert isinstance(stage.quorum.role, Resigned)
    assert len(stage.requests(end_quorum_epoch.Request)) == 2
    assert stage.quorum.leadership.leader == NOBODY


def test_a_leader_that_a_majority_hears_goes_on() -> None:
    stage = Stage()
    stage.elect()
    for _ in range(5):
        stage.fetch(2, 0, 0)
        stage.wait(2000)
    assert stage.quorum.is_leader


def test_whoever_stops_hands_over_and_does_not_stand_again() -> None:
    stage = Stage()
    stage.elect()
    stage.fetch(3, 3, 1)
    stage.obey(stage.quorum.resign(stage.now))
    request = stage.requests(end_quorum_epoch.Request)[0]
    order = [info.candidate_id for info in partition_of(request).preferred_candidates]
    assert order == [3, 2]  # The one that has the most stands first.
    assert not stage.quorum.has_told_all
    stage.wait(60_000)
    assert isinstance(stage.quorum.role, Resigned)


def test_a_higher_epoch_ends_ours() -> None:
    stage = Stage()
    stage.elect()
    parked = stage.fetch(2, 3, 1, wait_ms=500)
    assert parked is None
    stage.led_by(3, 9)
    assert stage.quorum.state == ElectionState(9, NodeId(3))
    refused = partition_of(stage.replies[-2])  # Before it, those who waited were sent away.
    assert refused.error_code == 6


def test_what_answers_a_question_of_a_former_role_is_ignored() -> None:
    stage = Stage()
    stage.start()
    stage.wait(100)
    request = stage.requests(vote.Request, to=2)[0]
    stage.led_by(3, 9)
    assert stage.answer(request, vote_response(Leadership(0, NOBODY), None, granted=True)) == []
    assert stage.quorum.state.epoch == 9


def test_a_vote_of_a_former_candidacy_is_no_pre_vote_of_the_same_epoch() -> None:
    stage = Stage()
    stage.start()
    stage.wait(100)
    grant = vote_response(Leadership(0, NOBODY), None, granted=True)
    stage.answer(stage.requests(vote.Request, to=2)[0], grant)
    late = stage.requests(vote.Request, to=3)[0]
    refusal = vote_response(Leadership(1, NOBODY), None)
    stage.answer(stage.requests(vote.Request, to=2)[0], refusal)
    stage.wait(3000)
    stage.wait(200)
    assert isinstance(stage.quorum.role, Prospective)
    assert stage.quorum.state.epoch == 1
    grant = vote_response(Leadership(1, NOBODY), None, granted=True)
    assert stage.answer(late, grant) == []
    assert isinstance(stage.quorum.role, Prospective)


def test_a_second_leader_of_an_epoch_is_not_followed() -> None:
    stage = Stage()
    stage.led_by(2, 5)
    stage.quorum.role = Unattached(stage.now)
    stage.led_by(3, 5)
    assert stage.quorum.state.leader == 2
    assert isinstance(stage.quorum.role, Unattached)


def test_what_is_about_another_partition_is_refused() -> None:
    with pytest.raises(Misplaced):
        Stage().ask(fetch.Request(topics=[fetch.FetchTopic("other", bytes(16))]))


def test_a_node_that_cannot_be_reached_is_asked_less_and_less_often() -> None:
    stage = Stage()
    stage.led_by(2, 5)
    delays = []
    for _ in range(6):
        request = stage.requests(fetch.Request, to=2)[0]
        stage.fail(request, is_closed=False)
        deadline = stage.quorum.outbox._retry_at[(TWO, fetch.Request)]
        delays.append(deadline - stage.now)
        stage.wait(deadline - stage.now)
    assert delays == [20, 40, 80, 160, 320, 640]
    assert key(1).id == 1
