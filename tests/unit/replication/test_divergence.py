"""Divergence of a follower's log as the leader sees it."""

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.replication.divergence import divergence
from tests.unit.replication.partition_model import ModelLog


def log(*epochs: int) -> ModelLog:
    made = ModelLog()
    for value, epoch in enumerate(epochs):
        made.append(epoch, value)
    return made


@pytest.mark.parametrize(
    ("fetch_offset", "last_fetched_epoch", "parting"),
    [
        (2, 1, None),  # All of epoch 1.
        (1, 1, None),  # A part of it.
        (5, 3, None),  # The end.
        (3, 1, (1, 2)),  # More of epoch 1 than the leader has.
        (6, 3, (3, 5)),  # More of the last epoch.
        (5, 2, (1, 2)),  # As long as the leader's log, but of an epoch it never had.
        (2, 2, (1, 2)),  # Shorter, and of an epoch it never had.
        (3, 2, (1, 2)),
    ],
)
def test_leader_compares_epochs_and_not_only_offsets(
    fetch_offset: int, last_fetched_epoch: int, parting: tuple[int, int] | None
) -> None:
    leader = log(1, 1, 3, 3, 3)
    found = divergence(leader, fetch_offset=fetch_offset, last_fetched_epoch=last_fetched_epoch)
    assert found == parting


def test_fetch_of_an_epoch_that_the_leader_has_not_reached_is_out_of_range() -> None:
    with pytest.raises(Refusal) as refused:
        divergence(log(1, 1), fetch_offset=2, last_fetched_epoch=4)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
