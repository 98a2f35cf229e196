"""Output of a tail: one line, and notes."""

import json

import pytest

from ottla.cdc.progress import Progress
from ottla.cli.tasks.tail import View, line


def test_the_line_tells_what_is_done_and_how_far_behind_it_is() -> None:
    assert line(Progress(), None) == "starting"
    assert line(Progress(phase="snapshot", rows=1), 20.4) == "1 row of the snapshot, 20/s"
    following = Progress(phase="stream", changes=12_345, confirmed_lsn=10, wal_lsn=10 + 2048)
    assert line(following, None) == "12,345 changes, 2.0 KiB behind"


def test_notes_are_json_where_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    view = View(Progress(phase="stream", changes=3), is_live=False, as_json=True)
    view.note("created topic x")
    view.end()
    first, last = (json.loads(text) for text in capsys.readouterr().out.splitlines())
    assert first == {"note": "created topic x"}
    assert (last["phase"], last["changes"], last["lag_bytes"]) == ("stream", 3, 0)
