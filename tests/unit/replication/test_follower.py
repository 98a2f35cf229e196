import pytest

from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic
from ottla.replication.follower import (
    Action,
    Answer,
    Append,
    AskOffsets,
    Follower,
    StartAt,
    State,
    Truncate,
)
from tests.unit.replication.partition_model import ModelLog

NOW = Monotonic(100)


def log(*epochs: int) -> ModelLog:
    """A log with one record for each given epoch."""
    made = ModelLog()
    for value, epoch in enumerate(epochs):
        made.append(epoch, value)
    return made


def follower(own: ModelLog, high_watermark: int = 0) -> Follower:
    return Follower(own, 9, high_watermark, backoff_ms=50)


def answered(following: Follower, **fields: object) -> Action:
    values = {"error_code": 0, "high_watermark": 0, "log_start_offset": 0, "has_records": False}
    return following.answered(
        Answer(**(values | fields)),  # type: ignore[arg-type]
        asked_offset=following.fetch_offset,
        asked_epoch=following.last_fetched_epoch,
        now=NOW,
    )


def test_records_are_appended_where_the_log_ends() -> None:
    own = log(1, 1)
    following = follower(own)
    assert (following.fetch_offset, following.last_fetched_epoch) == (2, 1)
    assert answered(following, has_records=True, high_watermark=3) == Append()
    own.append(1, 7)
    following.appended(9)
    assert following.high_watermark == 3  # Not beyond the log end.


def test_empty_response_advances_the_high_watermark() -> None:
    following = follower(log(1, 1, 1))
    assert answered(following, high_watermark=2) is None
    assert following.high_watermark == 2
    answered(following, high_watermark=1)
    assert following.high_watermark == 2


def test_response_to_an_outdated_fetch_is_ignored() -> None:
    following = follower(log(1, 1, 1))
    late = Answer(0, 3, 0, True)
    assert following.answered(late, asked_offset=2, asked_epoch=1, now=NOW) is None
    cut = Answer(0, 3, 0, False, (0, 1))
    assert following.answered(cut, asked_offset=3, asked_epoch=0, now=NOW) is None


@pytest.mark.parametrize(
    ("epochs", "told", "offset"),
    [
        ((1, 1, 1, 1), (1, 2), 2),  # The leader's epoch 1 is shorter than ours.
        ((1, 1, 2, 2), (1, 5), 2),  # It never had our epoch 2.
        ((1, 1, 3, 3), (2, 3), 2),  # Nor did we have its epoch 2: back to where 1 ended.
        ((1, 1, 1, 3), (2, 2), 3),  # The same; how its epoch 1 ended is asked with the next fetch.
        ((3, 3), (1, 1), 0),  # All of ours is newer than what we share.
        ((1, 1, 1), (1, -1), 1),  # Unknown to the leader: keep the committed part.
    ],
)
def test_log_is_truncated_where_it_diverges_from_the_leaders(
    epochs: tuple[int, ...], told: tuple[int, int], offset: int
) -> None:
    own = log(*epochs)
    following = follower(own, high_watermark=1)
    assert answered(following, diverging=told) == Truncate(offset)
    own.truncate(offset)
    following.truncated()
    assert following.high_watermark <= offset


def test_log_without_epochs_is_truncated_to_the_high_watermark() -> None:
    own = log(1, 1, 1)
    own.starts.clear()
    assert follower(own, high_watermark=2).first_action() == Truncate(2)
    assert follower(own, high_watermark=3).first_action() is None
    assert follower(log(1, 1), high_watermark=0).first_action() is None


def test_out_of_range_asks_for_the_leaders_start_and_end() -> None:
    following = follower(log(1, 1, 1))
    assert answered(following, error_code=ErrorCode.OFFSET_OUT_OF_RANGE) == AskOffsets()
    assert following.state is State.ASKING
    assert not following.may_fetch(NOW)
    assert following.leader_offsets(0, 2, NOW) == Truncate(2)
    assert following.may_fetch(NOW)
    assert following.leader_offsets(7, 9, NOW) == StartAt(7)


def test_out_of_range_for_an_offset_in_range_is_retried_after_a_backoff() -> None:
    following = follower(log(1, 1, 1))
    for wait_ms in (10, 20, 40, 50):
        assert answered(following, error_code=ErrorCode.OFFSET_OUT_OF_RANGE) == AskOffsets()
        assert following.leader_offsets(2, 9, NOW) is None
        assert not following.may_fetch(Monotonic(NOW + wait_ms - 1))
        assert following.may_fetch(Monotonic(NOW + wait_ms))


def test_follower_restarted_at_an_offset_has_it_as_high_watermark() -> None:
    own = log(1, 1, 1)
    following = follower(own, high_watermark=1)
    own.log_start_offset = 3
    following.truncated()
    assert following.high_watermark == 3


def test_a_fenced_follower_waits_for_the_metadata_log() -> None:
    following = follower(log(1))
    assert answered(following, error_code=ErrorCode.FENCED_LEADER_EPOCH) is None
    assert following.state is State.FENCED
    assert not following.may_fetch(Monotonic(10**9))


def test_any_other_error_is_retried_after_a_backoff() -> None:
    following = follower(log(1))
    for wait_ms in (10, 20, 40, 50, 50):
        answered(following, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert not following.may_fetch(Monotonic(NOW + wait_ms - 1))
        assert following.may_fetch(Monotonic(NOW + wait_ms))
    answered(following)
    assert following.may_fetch(NOW)
    answered(following, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert following.may_fetch(Monotonic(NOW + 10))


def test_leader_knows_our_end_once_it_has_answered_a_fetch() -> None:
    own = log(1, 1)
    following = follower(own)
    answered(following, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert not following.is_known_to_leader
    answered(following, diverging=(1, 1))
    assert not following.is_known_to_leader
    following.answered(Answer(0, 0, 0, False), asked_offset=9, asked_epoch=1, now=NOW)
    assert not following.is_known_to_leader, "that was asked for when the log was another"
    answered(following)
    assert following.is_known_to_leader


@pytest.mark.parametrize("useless", [{"diverging": (1, 1)}, {"has_records": True}])
def test_response_that_could_not_be_processed_does_not_reset_the_backoff(
    useless: dict[str, object],
) -> None:
    """Truncation or append fails each time: a full disk, or damaged records."""
    own = log(1, 1)
    following = follower(own)
    for wait_ms in (10, 20, 40, 50):
        assert answered(following, **useless) is not None
        following.failed(NOW)
        assert not following.may_fetch(Monotonic(NOW + wait_ms - 1))
        assert following.may_fetch(Monotonic(NOW + wait_ms))
    answered(following, has_records=True)
    own.append(1, 7)
    following.appended(0)
    following.failed(NOW)
    assert following.may_fetch(Monotonic(NOW + 10))
