import os
import signal

import pytest

from ottla.cli.tasks.pipeline import _Asked, _liner, bar, described
from ottla.spark.pipelines.progress import QueryProgress


def test_a_query_is_described_in_a_line() -> None:
    query = QueryProgress("lake", batches=3, rows=12_000, rows_per_second=512.4, batch_ms=1200)
    assert described(query) == (
        "lake: 12,000 rows in 3 batches, 512 rows/s, lag unknown, last batch 1,200 ms"
    )


def test_a_bar_fills() -> None:
    assert bar(None) == ""
    assert bar(0.0).startswith("░")
    assert bar(0.5).count("█") == 12
    assert bar(1.0).endswith("100%")
    assert "░" not in bar(1.0)


def test_lines_are_written_for_news_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    show = _liner()
    query = QueryProgress("lake")
    show({"lake": query}, False)
    show({"lake": query}, False)
    assert capsys.readouterr().err.count("lake:") == 1, "nothing new, nothing told"
    query.rows = 5
    show({"lake": query}, True)
    assert "lake: 5 rows" in capsys.readouterr().err


def test_signals_are_counted_while_it_listens() -> None:
    asked = _Asked()
    before = signal.getsignal(signal.SIGTERM)
    with asked.listening():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert asked.times == 2
    assert signal.getsignal(signal.SIGTERM) is before
