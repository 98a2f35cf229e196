"""Where two logs part, by offsets and epochs alone."""

import pytest

from ottla.quorum.log_view import (
    Diverging,
    NeedsSnapshot,
    OffsetAndEpoch,
    Valid,
    compare,
    end,
    is_up_to_date,
    truncation_point,
)
from tests.simulation.quorum_node import Entry, PureLog


def log_of(*epochs: int, start: int = 0, snapshot_epoch: int = 0) -> PureLog:
    log = PureLog()
    log.log_start_offset = start
    log.entries = [Entry(epoch, None) for epoch in epochs]
    if start:
        log.snapshots = {OffsetAndEpoch(start, snapshot_epoch): b""}
    return log


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ((0, 0), Valid()),
        ((2, 1), Valid()),
        ((3, 3), Valid()),
        ((5, 3), Valid()),
        ((3, 1), Diverging(OffsetAndEpoch(2, 1))),  # It has more of epoch 1 than we have.
        ((6, 3), Diverging(OffsetAndEpoch(5, 3))),
        ((3, 2), Diverging(OffsetAndEpoch(2, 1))),  # Of epoch 2 we have nothing.
        ((9, 7), Diverging(OffsetAndEpoch(5, 3))),
    ],
)
def test_a_followers_place_is_ours_or_we_say_where_ours_ends(
    place: tuple[int, int], found: object
) -> None:
    assert compare(log_of(1, 1, 3, 3, 3), OffsetAndEpoch(*place)) == found


@pytest.mark.parametrize(
    ("place", "needs"),
    [((0, 0), True), ((9, 2), True), ((10, 2), False), ((10, 1), True), ((11, 4), False)],
)
def test_what_is_no_longer_in_the_log_comes_as_a_snapshot(
    place: tuple[int, int], needs: bool
) -> None:
    log = log_of(4, 4, start=10, snapshot_epoch=2)
    expected = NeedsSnapshot(OffsetAndEpoch(10, 2)) if needs else Valid()
    assert compare(log, OffsetAndEpoch(*place)) == expected


def test_a_log_that_goes_on_right_after_its_snapshot_says_where_that_ended() -> None:
    log = log_of(4, start=10, snapshot_epoch=2)
    assert compare(log, OffsetAndEpoch(12, 3)) == Diverging(OffsetAndEpoch(10, 2))


def test_a_follower_cuts_where_both_logs_can_still_agree() -> None:
    log = log_of(1, 1, 2, 2)
    assert truncation_point(log, OffsetAndEpoch(1, 1)) == 1  # The leader has less of epoch 1.
    assert truncation_point(log, OffsetAndEpoch(9, 2)) == 4  # We have less of epoch 2.
    assert truncation_point(log_of(1, 3), OffsetAndEpoch(5, 2)) == 1  # We have none of epoch 2.


def test_a_later_epoch_counts_for_more_than_a_longer_log() -> None:
    log = log_of(1, 2)
    assert end(log) == (2, 2)
    assert is_up_to_date(log, OffsetAndEpoch(2, 2))
    assert is_up_to_date(log, OffsetAndEpoch(1, 3))
    assert not is_up_to_date(log, OffsetAndEpoch(1, 2))
    assert not is_up_to_date(log, OffsetAndEpoch(9, 1))
