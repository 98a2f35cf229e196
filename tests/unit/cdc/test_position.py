"""Positions: their order, their headers, and PostgreSQL's way to write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cdc.errors import NotPossible
from ottla.cdc.position import NOWHERE, Position, headers_of, lsn_number, lsn_text, position_in

LSNS = st.integers(0, 2**64 - 1)


@given(LSNS, st.integers(0, 2**40), st.none() | st.integers(0, 2**32))
def test_headers_tell_the_position(lsn: int, change: int, xid: int | None) -> None:
    position = Position(lsn, change)
    assert position_in(headers_of("u", position, xid, 5), "it") == position
    assert position > NOWHERE


@given(LSNS)
def test_an_lsn_is_read_as_it_is_written(lsn: int) -> None:
    assert lsn_number(lsn_text(lsn)) == lsn


def test_snapshot_positions_sort_before_changes_at_the_same_lsn() -> None:
    assert lsn_text(0x16_0000_0AB0) == "16/AB0"
    assert Position(5, 0).is_snapshot
    assert Position(5, 0) < Position(5, 1) < Position(6, 0)


@pytest.mark.parametrize("headers", [(), (("lsn", b"5"),), (("lsn", b"x"), ("index", b"1"))])
def test_records_without_position_headers_are_refused(
    headers: tuple[tuple[str, bytes], ...],
) -> None:
    with pytest.raises(NotPossible, match="offset 3 of t was not written by a tail"):
        position_in(headers, "offset 3 of t")
