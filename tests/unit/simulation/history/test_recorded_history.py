import pytest

from ottla.model.types import TopicPartition
from ottla.simulation.history.history import IDEMPOTENT, Sent, Violation
from ottla.simulation.history.recorded_history import RecordedHistory

PLACE = TopicPartition("t", 0)


def recorded(count: int = 3) -> tuple[RecordedHistory, list[tuple[int, bytes]]]:
    """Values that one producer sent, and one consumer read."""
    clock = iter(range(1, 1000))
    history = RecordedHistory(now_ns=lambda: next(clock))
    records = [(number, b"p/%d/xxx" % number) for number in range(count)]
    for number, value in records:
        history.sending(value, Sent("p", number, IDEMPOTENT, PLACE))
        history.acknowledged(value, number)
        history.read(PLACE, number, value, "c")
    return history, records


def test_what_was_written_and_read_in_order_is_fine() -> None:
    history, records = recorded()
    history.judge({PLACE: records})


def test_what_is_gone_is_found() -> None:
    history, records = recorded()
    with pytest.raises(Violation, match="vanished"):
        history.judge({PLACE: records[:-1]})


def test_a_consumer_that_leaves_out_a_record_is_found() -> None:
    history, records = recorded()
    del history.polls[1]
    with pytest.raises(Violation, match="poll skip"):
        history.judge({PLACE: records})


def test_nothing_is_expected_of_a_topic_that_was_deleted() -> None:
    history, _ = recorded()
    history.forget("t")
    history.judge({})
