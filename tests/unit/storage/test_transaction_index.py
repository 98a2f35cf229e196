import pytest

from ottla.storage.index import BadIndex
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

FIRST = AbortedTransaction(1, 10, 20, 15)
SECOND = AbortedTransaction(2, 15, 30, 31)


def test_an_entry_has_kafkas_34_bytes() -> None:
    data = TransactionIndex([FIRST]).encode()
    assert data.hex() == "0000" + "".join(f"{n:016x}" for n in (1, 10, 20, 15))
    assert TransactionIndex.decode(data, 0).entries == [FIRST]


@pytest.mark.parametrize(
    ("start", "end", "expected", "is_done"),
    [
        (0, 100, [FIRST, SECOND], False),
        (0, 12, [FIRST], True),  # When the first ended, nothing before 15 was open any more.
        (21, 100, [SECOND], False),
        (31, 100, [], False),
        (0, 10, [], True),
    ],
)
def test_those_that_touch_a_range_are_collected(
    start: int, end: int, expected: list[AbortedTransaction], is_done: bool
) -> None:
    found: list[AbortedTransaction] = []
    assert TransactionIndex([FIRST, SECOND]).collect(start, end, found) == is_done
    assert found == expected


def test_truncation_forgets_markers_at_or_past_the_offset() -> None:
    index = TransactionIndex([FIRST, SECOND])
    index.truncate_to(30)
    assert index.entries == [FIRST]


@pytest.mark.parametrize("data", [b"\x00" * 33, b"\x00\x01" + bytes(32)])
def test_what_cannot_be_is_refused(data: bytes) -> None:
    with pytest.raises(BadIndex):
        TransactionIndex.decode(data, 0)


def test_an_entry_before_its_segment_is_refused() -> None:
    with pytest.raises(BadIndex):
        TransactionIndex.decode(TransactionIndex([FIRST]).encode(), 21)
