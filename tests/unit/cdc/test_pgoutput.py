"""The parser of pgoutput: messages round-trip, and malformed ones are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cdc.errors import BadMessage
from ottla.cdc.pgoutput import (
    UNCHANGED,
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    Message,
    Other,
    Relation,
    Truncate,
    Update,
    parse,
)
from tests.unit.cdc.pgoutput_writing import written

IDS = st.integers(0, 2**32 - 1)
LSNS = st.integers(0, 2**64 - 1)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
VALUES = st.none() | st.just(UNCHANGED) | st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.lists(VALUES, max_size=5)
COLUMNS = st.builds(Column, NAMES, IDS, st.booleans())
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Begin, LSNS, st.integers(-(2**60), 2**60), IDS),
    st.builds(Commit, LSNS, LSNS),
    st.builds(
        Relation,
        IDS,
        NAMES,
        NAMES,
        st.sampled_from("dinf"),
        st.lists(COLUMNS, max_size=4).map(tuple),
    ),
    st.builds(Insert, IDS, ROWS),
    st.builds(Update, IDS, st.none() | ROWS, ROWS),
    st.builds(Delete, IDS, ROWS),
    st.builds(Truncate, st.lists(IDS, max_size=3).map(tuple)),
    st.builds(Other, st.sampled_from("OYM")),
)


@given(MESSAGES, st.booleans())
def test_every_message_is_read_as_it_was_written(message: Message, old_is_key: bool) -> None:
    assert parse(written(message, old_is_key=old_is_key)) == message


@given(MESSAGES, st.data())
def test_a_message_cut_short_is_refused(message: Message, data: st.DataObject) -> None:
    if not isinstance(message, Other | Begin | Commit):
        whole = written(message)
        cut = data.draw(st.integers(0, len(whole) - 1))
        with pytest.raises(BadMessage):
            parse(whole[:cut])


@given(st.binary())
def test_any_bytes_are_a_message_or_refused(payload: bytes) -> None:
    with suppress(BadMessage):
        parse(payload)


def test_what_postgresql_15_really_sent() -> None:
    insert = b"I\x00\x00@\x00N\x00\x02t\x00\x00\x00\x016t\x00\x00\x00\x05after"
    assert parse(insert) == Insert(16384, ["6", "after"])
    relation = (
        b"R\x00\x00@\x00public\x00t\x00d\x00\x02\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"
        b"\x00v\x00\x00\x00\x00\x19\xff\xff\xff\xff"
    )
    columns = (Column("id", 23, True), Column("v", 25, False))
    assert parse(relation) == Relation(16384, "public", "t", "d", columns)
