import pytest

from ottla.simulation.history.history import Violation
from ottla.simulation.history.keyed_history import Found, KeyedHistory, KeyedSend

A, B = b"a", b"b"


def history(*sends: tuple[bytes, bytes | None, int | None]) -> KeyedHistory:
    """Records of one producer: key, value, and the offset if it was acknowledged."""
    made = KeyedHistory()
    for number, (key, value, offset) in enumerate(sends):
        id_ = b"%d" % number
        made.sending(id_, KeyedSend(key, value, "producer"))
        if offset is not None:
            made.acknowledged(id_, offset)
    return made


def check(made: KeyedHistory, *records: Found, end: int = 10, is_final: bool = True) -> None:
    made.check_pass(records, end, made.newest(), is_final=is_final)


def test_an_older_record_of_a_key_may_be_gone() -> None:
    made = history((A, b"1", 0), (A, b"2", 1))
    check(made, Found(1, b"1", A, b"2"))
    check(made, Found(0, b"0", A, b"1"), Found(1, b"1", A, b"2"))
    assert made.passes == 2


def test_the_newest_record_of_a_key_must_be_there() -> None:
    with pytest.raises(Violation, match="is left"):
        check(history((A, b"1", 0), (A, b"2", 1)), Found(0, b"0", A, b"1"))
    with pytest.raises(Violation, match="is gone"):
        check(history((A, b"1", 0), (B, b"2", 1)), Found(1, b"1", B, b"2"))


def test_a_tombstone_may_go_but_not_before_what_it_deletes() -> None:
    made = history((A, b"1", 0), (A, None, 1))
    check(made)
    check(made, Found(1, b"1", A, None))
    with pytest.raises(Violation, match="is left"):
        check(made, Found(0, b"0", A, b"1"))


def test_a_tombstone_that_was_not_acknowledged_may_have_been_written() -> None:
    check(history((A, b"1", 0), (A, None, None)))


def test_a_record_beyond_the_end_of_a_read_may_have_replaced_the_newest() -> None:
    made = history((A, b"1", 0), (A, b"2", 5))
    newest = {A: made.sent[b"0"]}
    made.check_pass((), 3, newest, is_final=False)
    with pytest.raises(Violation, match="is gone"):
        made.check_pass((), 10, newest, is_final=True)


@pytest.mark.parametrize(
    "wrong",
    [
        Found(0, b"7", A, b"1"),
        Found(0, b"0", B, b"1"),
        Found(0, b"0", A, b"2"),
        Found(3, b"0", A, b"1"),
    ],
)
def test_a_record_is_what_was_sent_and_where_it_was_acknowledged(wrong: Found) -> None:
    with pytest.raises(Violation):
        check(history((A, b"1", 0)), wrong)


def test_offsets_ascend_and_keep_their_records() -> None:
    made = history((A, b"1", None), (A, b"2", None))
    with pytest.raises(Violation, match="after"):
        check(made, Found(1, b"1", A, b"2"), Found(0, b"0", A, b"1"))
    with pytest.raises(Violation, match="and now"):
        check(made, Found(1, b"0", A, b"1"))


def test_records_of_a_producer_lie_in_their_order() -> None:
    history((A, b"1", 0), (A, b"2", 1)).check_order()
    with pytest.raises(Violation, match="before"):
        history((A, b"1", 1), (A, b"2", 0)).check_order()
