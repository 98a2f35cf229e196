"""Notes of a replay are read back; other metadata is ignored."""

import pytest

from ottla.cli.tasks.replay_notes import Begun, read_note
from ottla.client.idempotence import Identity


@pytest.mark.parametrize("target", [None, "orders"])
def test_a_note_is_read_back_until_it_is_done(target: str | None) -> None:
    note = Begun(70, Identity(4711, 2), target)
    assert read_note(note.encode(), 20) == note
    assert read_note(note.encode(), 70) is None


@pytest.mark.parametrize("text", ["", "a note", "{}", "[1]", '{"replaying_until": "x"}', "7"])
def test_foreign_commit_metadata_is_not_a_note(text: str) -> None:
    assert read_note(text, 0) is None
