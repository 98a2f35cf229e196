"""Changes and their positions: the same for the same stream, however often it is sent."""

import pytest

from ottla.cdc.changes import Change, Changes, Committed
from ottla.cdc.errors import BadMessage
from ottla.cdc.pgoutput import Begin, Commit, Delete, Insert, Message, Other, Truncate, Update
from ottla.cdc.position import Position

COMMIT: list[Message] = [
    Begin(100, 5_000_000, 7),
    Insert(1, ["a"]),
    Update(1, None, ["b"]),
    Other("M"),
    Update(2, ["b"], ["c"]),
    Delete(1, ["c"]),
    Truncate((1, 2)),
    Commit(100, 120),
]


def changes_of(messages: list[Message]) -> list[object]:
    changes = Changes()
    return [event for message in messages for event in changes.take(message)]


def test_positions_count_the_changes_of_a_commit_and_an_update_takes_two() -> None:
    *found, end = changes_of(COMMIT)
    assert [(c.op, c.position) for c in found if isinstance(c, Change)] == [
        ("c", Position(100, 1)),
        ("u", Position(100, 2)),
        ("u", Position(100, 4)),
        ("d", Position(100, 6)),
        ("t", Position(100, 7)),
        ("t", Position(100, 8)),
    ]
    assert end == Committed(120)
    assert all((c.xid, c.ts_ms) == (7, 5000) for c in found if isinstance(c, Change))
    assert changes_of([*COMMIT, *COMMIT]) == changes_of(COMMIT) * 2


def test_is_inside_tells_an_open_transaction() -> None:
    changes = Changes()
    inside = []
    for message in COMMIT:
        changes.take(message)
        inside.append(changes.is_inside)
    assert inside == [True] * 7 + [False]


def test_a_change_outside_of_a_transaction_is_refused() -> None:
    with pytest.raises(BadMessage, match="outside of a transaction"):
        Changes().take(Insert(1, ["a"]))
