"""Adding, removing and updating voters, as the leader does it."""

from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, Offset
from ottla.protocol.messages import (
    add_raft_voter,
    api_versions,
    fetch,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from ottla.quorum.effects import AppendControl, EndEpoch
from ottla.quorum.election_state import ElectionState
from ottla.quorum.messages import Leadership, fetch_response
from ottla.quorum.roles import Resigned
from ottla.quorum.voter_history import VoterHistory
from tests.unit.quorum.scene import CLUSTER, Stage, key, voters


def leading(*among: int) -> Stage:
    """A leader that has committed something of its epoch."""
    stage = Stage(among=among or (1, 2, 3))
    if len(stage.quorum.voters.by_id) == 1:
        stage.start()
    else:
        stage.elect()
        for node in among[1:] or (2, 3):
            stage.fetch(node, stage.log.end_offset, 1)
    assert stage.quorum.high_watermark == stage.log.end_offset
    return stage


def add(node: int, *, when_committed: bool = True) -> add_raft_voter.Request:
    where = [add_raft_voter.Listener("CONTROLLER", f"host{node}", 9093)]
    directory = key(node).directory_id
    return add_raft_voter.Request(CLUSTER, 1000, node, directory, where, when_committed)


def remove(node: int) -> remove_raft_voter.Request:
    return remove_raft_voter.Request(CLUSTER, node, key(node).directory_id)


def versions(stage: Stage, newest: int = 1) -> None:
    (request,) = stage.requests(api_versions.Request)
    feature = api_versions.SupportedFeatureKey("kraft.version", 0, newest)
    stage.answer(request, api_versions.Response(supported_features=[feature]))


def catch_up(stage: Stage, node: int) -> None:
    stage.fetch(node, stage.log.end_offset, stage.log.last_epoch)


def test_a_voter_joins_once_it_has_caught_up_and_counts_at_once() -> None:
    stage = leading(1)
    assert stage.ask(add(2)) is None
    versions(stage)
    assert stage.quorum.voters == voters(1)  # It has fetched nothing yet.
    catch_up(stage, 2)
    assert stage.quorum.voters == voters(1, 2)
    assert not stage.replies[-1:] or not isinstance(stage.replies[-1], add_raft_voter.Response)
    catch_up(stage, 2)  # Now both have its record.
    assert any(isinstance(r, add_raft_voter.Response) and not r.error_code for r in stage.replies)
    assert stage.quorum.change is None


def test_whoever_does_not_want_to_wait_is_answered_when_it_is_written() -> None:
    stage = leading(1)
    stage.ask(add(2, when_committed=False))
    versions(stage)
    catch_up(stage, 2)
    assert any(isinstance(r, add_raft_voter.Response) for r in stage.replies)
    assert stage.quorum.change is not None


def test_changes_come_one_after_the_other() -> None:
    stage = leading()
    stage.ask(remove(3))
    assert stage.quorum.voters == voters(1, 2)
    refused = stage.ask(remove(2))
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    stage.fetch(2, stage.log.end_offset, 1)
    assert isinstance(stage.replies[-2], remove_raft_voter.Response)
    assert stage.replies[-2].error_code == 0


def test_no_change_before_the_epoch_has_committed_something() -> None:
    stage = Stage()
    stage.elect()
    assert stage.ask(remove(3)).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert stage.quorum.voters == voters(1, 2, 3)


def test_leader_refuses_a_change_until_its_epoch_commits_though_the_last_one_is_committed() -> None:
    """The bug of Ongaro's single-server changes: two leaders could each commit with their own set.

    The voters record of an earlier epoch is below the high watermark that node 1 learned as a
    follower; that says nothing of changes which another leader may have appended since.
    """
    stage = Stage(epochs=(1, 1, 1))
    stage.quorum.history.voters_read(Offset(1), voters(1, 2, 3))
    stage.led_by(2, 1)
    request = stage.requests(fetch.Request, to=2)[0]
    part = fetch.PartitionData(0, high_watermark=3)
    stage.answer(request, fetch_response(Leadership(1, NodeId(2)), None, part))
    assert stage.quorum.high_watermark == 3 > stage.quorum.history.changed_at
    stage.elect()
    refused = stage.ask(remove(3))
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    refused = stage.ask(add(4))
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert stage.quorum.change is None
    stage.fetch(2, stage.log.end_offset, stage.quorum.state.epoch)  # Commits the new epoch.
    assert stage.ask(remove(3)) is None
    assert stage.quorum.voters == voters(1, 2)


def test_a_leader_that_is_removed_leads_until_that_is_committed() -> None:
    stage = leading()
    stage.ask(remove(1))
    assert stage.quorum.is_leader
    stage.fetch(2, stage.log.end_offset, 1)
    assert stage.quorum.is_leader  # One of two is no majority, and it counts itself no more.
    stage.fetch(3, stage.log.end_offset, 1)
    assert EndEpoch(1) in stage.effects
    assert not stage.quorum.is_leader


def taken_out() -> Stage:
    """Started again with a record that nobody else may have: it votes no more."""
    stage = Stage(among=(1, 2), epochs=[1, 1, 1], state=ElectionState(1, NodeId(1)))
    stage.quorum.history.voters_read(Offset(2), voters(2))
    return stage


def test_who_was_taken_out_stands_while_that_may_not_be_committed() -> None:
    """The other's log may be shorter, and so nobody else could be elected."""
    stage = taken_out()
    stage.elect()
    end = stage.log.end_offset
    stage.fetch(2, end, stage.quorum.state.epoch)
    assert stage.quorum.high_watermark == end
    assert isinstance(stage.quorum.role, Resigned), "now it is committed that it votes no more"


def test_who_was_taken_out_for_good_does_not_stand() -> None:
    stage = taken_out()
    stage.quorum.history.committed(Offset(3))
    stage.start()
    stage.wait(3000)
    assert not stage.requests(vote.Request)


def test_what_makes_no_sense_is_refused() -> None:
    stage = leading()
    for request, code in (
        (add(2), ErrorCode.DUPLICATE_VOTER),
        (remove(9), ErrorCode.VOTER_NOT_FOUND),
        (add_raft_voter.Request(CLUSTER, 1, 4, key(4).directory_id), ErrorCode.INVALID_REQUEST),
        (remove_raft_voter.Request("other", 2), ErrorCode.INCONSISTENT_CLUSTER_ID),
    ):
        response = stage.ask(request)
        assert response.error_code == code
        assert response.error_message or code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert leading(1).ask(remove(1)).error_code == ErrorCode.INVALID_REQUEST
    stage.quorum.history = VoterHistory(voters(1, 2, 3), 0)
    assert stage.ask(remove(3)).error_code == ErrorCode.UNSUPPORTED_VERSION
    follower = Stage()
    follower.led_by(2, 5)
    assert follower.ask(remove(3)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_voter_that_is_too_old_or_out_of_reach_does_not_join() -> None:
    stage = leading(1)
    stage.ask(add(2))
    versions(stage, newest=0)
    assert stage.replies[-1].error_code == ErrorCode.INVALID_REQUEST
    stage.ask(add(3))
    stage.fail(stage.requests(api_versions.Request, to=3)[0], is_closed=True)
    assert stage.replies[-1].error_code == ErrorCode.REQUEST_TIMED_OUT
    stage.ask(add(4))
    stage.wait(1000)
    assert stage.replies[-1].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert stage.quorum.change is None


def test_a_voter_that_moved_is_written_down() -> None:
    stage = leading()
    request = update_raft_voter.Request(
        CLUSTER,
        stage.quorum.state.epoch,
        2,
        key(2).directory_id,
        [update_raft_voter.Listener("CONTROLLER", "elsewhere", 1)],
        update_raft_voter.KRaftVersionFeature(0, 1),
    )
    stage.ask(request)
    assert any(isinstance(effect, AppendControl) for effect in stage.effects)
    assert stage.quorum.address_of(key(2).id) == ("elsewhere", 1)
    stage.fetch(3, stage.log.end_offset, 1)
    response = next(r for r in stage.replies if isinstance(r, update_raft_voter.Response))
    assert (response.error_code, response.current_leader.leader_id) == (0, 1)
    assert stage.ask(request).error_code == 0  # Nothing new: no record for it.
    assert stage.log.end_offset == stage.quorum.high_watermark


def test_whoever_waits_hears_that_the_leader_is_gone() -> None:
    stage = leading()
    stage.ask(remove(3))
    stage.led_by(2, 9)
    response = next(r for r in stage.replies if isinstance(r, remove_raft_voter.Response))
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
