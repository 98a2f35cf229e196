"""The checker itself: for each anomaly a history that has it."""

import pytest

from ottla.model.types import TopicPartition
from ottla.simulation.history.history import (
    ACKS_NONE,
    ACKS_ONE,
    IDEMPOTENT,
    End,
    Guarantee,
    History,
    Sent,
    Violation,
    check_final,
)

HERE = TopicPartition("events", 0)
THERE = TopicPartition("events", 1)


def history_of(*acknowledged: int | None, guarantee: Guarantee = IDEMPOTENT) -> History:
    """Values 0, 1, 2 ... of one producer, with the offsets that were acknowledged."""
    history = History()
    for number, offset in enumerate(acknowledged):
        value = b"%d" % number
        history.sending(value, Sent("p", number, guarantee, HERE))
        if offset is not None:
            history.acknowledged(value, offset)
    return history


def log_of(*values: bytes, start: int = 0) -> dict[TopicPartition, list[tuple[int, bytes]]]:
    return {HERE: list(enumerate(values, start))}


def test_a_history_without_faults_is_accepted() -> None:
    check_final(history_of(0, 1, 2), log_of(b"0", b"1", b"2"))


def test_what_failed_may_be_there_or_not() -> None:
    check_final(history_of(0, None, 1), log_of(b"0", b"2"))
    check_final(history_of(0, None, 2), log_of(b"0", b"1", b"2"))


def test_an_acknowledged_record_that_is_lost_is_found() -> None:
    with pytest.raises(Violation, match="lost"):
        check_final(history_of(0, 1), log_of(b"0"))


def test_an_acknowledged_record_that_lies_elsewhere_is_found() -> None:
    with pytest.raises(Violation, match="lies at"):
        check_final(history_of(1, 0), log_of(b"0", b"1"))


def test_a_duplicate_of_an_idempotent_producer_is_found() -> None:
    with pytest.raises(Violation, match="2 times"):
        check_final(history_of(0, None), log_of(b"0", b"1", b"1"))


def test_a_duplicate_without_idempotence_is_allowed() -> None:
    check_final(history_of(0, 1, guarantee=ACKS_ONE), log_of(b"0", b"1", b"1"))


def test_without_acks_records_may_be_lost_but_not_doubled() -> None:
    check_final(history_of(-1, -1, guarantee=ACKS_NONE), log_of(b"1"))
    with pytest.raises(Violation, match="2 times"):
        check_final(history_of(-1, guarantee=ACKS_NONE), log_of(b"0", b"0"))


def test_a_wrong_order_is_found() -> None:
    with pytest.raises(Violation, match="sent 0 before 1"):
        check_final(history_of(1, 0), log_of(b"1", b"0"))


def test_a_gap_in_the_offsets_is_found() -> None:
    with pytest.raises(Violation, match="right after"):
        check_final(history_of(0, 2), {HERE: [(0, b"0"), (2, b"1")]})


def test_a_record_that_changed_after_it_was_read_is_found() -> None:
    history = history_of(None, None)
    history.read(HERE, 0, b"0")
    with pytest.raises(Violation, match="is now"):
        check_final(history, log_of(b"1"))


def test_a_record_that_went_away_after_it_was_read_is_found() -> None:
    history = history_of(None, None)
    history.read(HERE, 1, b"1")
    with pytest.raises(Violation, match="is gone"):
        check_final(history, log_of(b"0"))


def test_a_record_that_nobody_sent_is_found() -> None:
    with pytest.raises(Violation, match="nobody sent"):
        history_of(0).read(HERE, 5, b"?")


def test_a_record_in_another_partition_is_found() -> None:
    with pytest.raises(Violation, match="was sent to"):
        history_of(0).read(THERE, 0, b"0")


def test_after_power_loss_only_what_stays_counts() -> None:
    history = history_of(0, 1)
    history.read(HERE, 1, b"1")
    history.forget_unsynced()
    check_final(history, log_of(b"0"))


def test_a_deleted_topic_is_expected_no_more() -> None:
    history = history_of(0)
    history.read(HERE, 0, b"0")
    history.forget("events")
    check_final(history, {})


def test_what_someone_wants_deleted_may_be_gone_or_not() -> None:
    history = history_of(0, 1, 2)
    history.trims[HERE].asked = 2
    history.read(HERE, 1, b"1")
    check_final(history, log_of(b"2", start=2))
    check_final(history, log_of(b"0", b"1", b"2"))
    with pytest.raises(Violation, match="lost"):
        check_final(history, log_of(start=3))


def test_a_record_whose_offset_nobody_knows_may_be_deleted_only_if_something_is() -> None:
    history = history_of(0, -1)
    with pytest.raises(Violation, match="lost"):
        check_final(history, log_of(b"0"))
    history.trims[HERE].retained = 2
    check_final(history, log_of(b"0"))


def test_a_record_beyond_what_a_leader_calls_committed_is_found() -> None:
    history = History(committed_end=lambda _: 1)
    history.sending(b"a", Sent("producer", 0, IDEMPOTENT, HERE))
    history.read(HERE, 0, b"a")
    with pytest.raises(Violation, match=r"I8: .* up to 2, committed up to 1"):
        history.read(HERE, 1, b"a")
    with pytest.raises(Violation, match=r"I8: .* up to 2, committed up to 1"):
        history.latest(HERE, End(2, 0, 0.0, 0.1))


def test_the_end_of_a_log_does_not_go_back_from_epoch_to_epoch() -> None:
    history = History()
    history.latest(HERE, End(5, 1, 0.0, 1.0))
    history.latest(HERE, End(4, 1, 0.5, 1.5))  # Asked before the other was answered.
    history.latest(HERE, End(4, 0, 2.0, 2.5))  # By a leader that does not know of its successor.
    with pytest.raises(Violation, match=r"I9: .* ended at 5 in epoch 1, and later at 4 in epoch 2"):
        history.latest(HERE, End(4, 2, 2.0, 2.5))


def test_after_a_power_loss_without_sync_a_log_may_end_earlier() -> None:
    history = History()
    history.latest(HERE, End(5, 1, 0.0, 1.0))
    history.forget_unsynced()
    history.latest(HERE, End(4, 1, 2.0, 2.5))


def test_an_unclean_election_may_lose_records_of_its_partition_alone() -> None:
    history = history_of(0, 1)
    history.read(HERE, 0, b"0")
    history.elected_uncleanly(THERE)
    with pytest.raises(Violation, match="lost"):
        check_final(history, log_of(b"0"))
    history.elected_uncleanly(HERE)
    check_final(history, log_of(b"1"))
    with pytest.raises(Violation, match="nobody sent"):
        check_final(history, log_of(b"x"))
