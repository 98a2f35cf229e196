import io
import json

import pytest
from rich.console import Console

from ottla.cli.views.pipeline_view import (
    JsonLines,
    Lines,
    Moment,
    bar,
    clock,
    described,
    painted,
)
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


def test_time_is_told_in_hours() -> None:
    assert [clock(seconds) for seconds in (0.9, 65, 3_600 * 30 + 1)] == [
        "0:00:00",
        "0:01:05",
        "30:00:01",
    ]


def test_lines_are_written_for_news_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    view = Lines()
    query = QueryProgress("lake")
    view.show(Moment([query], 1), is_end=False)
    view.show(Moment([query], 2), is_end=False)
    assert capsys.readouterr().err.count("lake:") == 1, "nothing new, nothing told"
    query.rows = 5
    view.show(Moment([query, QueryProgress("bills", rows=7)], 65), is_end=True)
    told = capsys.readouterr().err
    assert "lake: 5 rows" in told
    assert told.endswith("ottla: 12 rows in all, in 0:01:05\n")


def test_a_broker_that_is_away_is_told_once_and_so_is_its_return(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = Lines()
    for away_s in (None, 1.0, 12.4, 13.0, None):
        view.show(Moment([], 1, away_s), is_end=False)
    assert capsys.readouterr().err.splitlines() == [
        "ottla: no broker has answered for 12 s; the queries wait",
        "ottla: the broker answers again",
    ]


def test_scripts_get_an_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonLines()
    query = QueryProgress("lake", batches=1, rows=5, lag=3)
    for away_s, is_end in ((None, False), (3.0, False), (None, False), (None, True)):
        view.show(Moment([query], 1.23, away_s), is_end=is_end)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in told] == [
        "progress",
        "broker_away",
        "broker_back",
        "progress",
        "end",
    ]
    assert told[0] == {"event": "progress", "seconds": 1.2, **query.as_json()}
    assert told[-1] == {"event": "end", "seconds": 1.2, "rows": 5}


def test_the_table_has_time_total_and_the_address_of_sparks_pages() -> None:
    written = io.StringIO()
    moment = Moment([QueryProgress("lake", rows=5), QueryProgress("x", rows=7)], 65, 12.0, "u:4040")
    Console(file=written, width=100).print(painted(moment, is_once=True))
    assert "0:01:05, 12 rows in all; Spark's pages: u:4040" in written.getvalue()
    assert "no broker has answered for 12 s" in written.getvalue()
    away_s = None
    written.truncate(0)
    Console(file=written, width=100).print(painted(Moment([], 65, away_s), is_once=False))
    assert "no broker" not in written.getvalue()
