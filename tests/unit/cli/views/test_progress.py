"""Progress where there is no terminal."""

import pytest

from ottla.cli.views import progress
from ottla.cli.views.progress import Bar


def test_each_count_is_a_line_and_other_words_alone_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Bar("Moving", 1_000) as bar:
        bar.seen(1, "moved, a")
        bar.seen(1, "moved, b")
        bar.seen(2, "moved, c")
    assert capsys.readouterr().err == "1 of 1,000 moved, a\n2 of 1,000 moved, c\n"


def test_other_words_are_told_after_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS_MIN", -1)
    with Bar("Moving", 9) as bar:
        bar.seen(1, "moved, a")
        bar.seen(1, "moved, a")
        bar.seen(1, "moved, b")
    assert capsys.readouterr().err == "1 of 9 moved, a\n1 of 9 moved, b\n"


def test_a_terminal_gets_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Bar("Moving", 9) as bar:
        bar.seen(4, "moved")
    assert "Moving" in capsys.readouterr().err
