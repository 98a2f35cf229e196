"""The order of effects is a promise: what is said rests on what is written."""

from ottla.quorum.effects import PersistState, Reply
from tests.unit.quorum.scene import Stage


def test_a_vote_is_durable_before_it_is_given() -> None:
    stage = Stage()
    stage.start()
    stage.vote(2, 1, (0, 0))
    kinds = [type(effect) for effect in stage.effects]
    assert kinds == [PersistState, PersistState, Reply]  # The epoch, the vote, the answer.
