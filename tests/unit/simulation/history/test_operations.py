"""Operations as lines of JSON, and back."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.simulation.history.operations import (
    Assign,
    Commit,
    Committed,
    Kind,
    Operation,
    Outcome,
    Owned,
    Poll,
    Send,
    from_lines,
    to_lines,
)

OFFSETS = st.integers(0, 2**63 - 1)
KEYS = st.text(max_size=5)
STEPS = st.one_of(
    st.builds(Send, KEYS, st.text(), st.none() | OFFSETS),
    st.builds(
        Poll, st.dictionaries(KEYS, st.lists(st.tuples(OFFSETS, st.text()), max_size=3), max_size=3)
    ),
    st.builds(Assign, st.lists(KEYS, max_size=3)),
    st.builds(Commit, KEYS, KEYS, OFFSETS),
    st.builds(Committed, KEYS, KEYS, st.integers(-1, 9)),
    st.builds(Owned, KEYS, st.integers(0, 9), st.lists(KEYS, max_size=3)),
)
OPERATIONS = st.builds(
    Operation,
    index=st.integers(0, 10**9),
    process=st.text(),
    outcome=st.sampled_from(Outcome),
    kind=st.sampled_from(Kind),
    began_ns=OFFSETS,
    ended_ns=OFFSETS,
    steps=st.lists(STEPS, max_size=4).map(tuple),
    rebalanced=st.lists(KEYS, max_size=2).map(tuple),
)


@given(st.lists(OPERATIONS, max_size=5))
def test_what_is_written_is_read_again(operations: list[Operation]) -> None:
    lines = list(to_lines(operations))
    assert all("\n" not in line for line in lines)
    assert list(from_lines(lines)) == operations


def test_a_line_can_be_read_by_people() -> None:
    operation = Operation(3, "p", Outcome.INFO, Kind.SEND, 10, 20, (Send("orders-0", "a"),))
    (line,) = to_lines([operation])
    assert line == (
        '{"index":3,"process":"p","outcome":"info","kind":"send","began_ns":10,"ended_ns":20,'
        '"steps":[["send","orders-0","a",null]],"rebalanced":[]}'
    )
