"""The order of effects is a promise: what is said rests on what is written."""

from ottla.quorum.effects import BeginEpoch, PersistState, Reply, Send
from tests.unit.quorum.scene import Stage


def test_a_vote_is_durable_before_it_is_given() -> None:
    stage = Stage()
    stage.start()
    stage.vote(2, 1, (0, 0))
    kinds = [type(effect) for effect in stage.effects]
    assert kinds == [PersistState, PersistState, Reply]  # The epoch, the vote, the answer.


def test_an_epoch_is_durable_before_anyone_hears_of_it() -> None:
    stage = Stage()
    stage.start()
    stage.wait(100)
    before = len(stage.sent)
    stage.elect()
    assert [send.request.topics[0].partitions[0].pre_vote for send in stage.sent[:before]]
    begin = BeginEpoch(1, ())
    assert begin == BeginEpoch(1, ())  # Effects are values.
    assert isinstance(stage.sent[0], Send)
