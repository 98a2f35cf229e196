import json
from typing import Any

from ottla.spark.pipelines.progress import QueryProgress, read_offsets


def offsets(**partitions: int) -> dict[str, Any]:
    return {"topics": {"t": {"id": None, "partitions": partitions}}}


def report(batch: int, rows: int, start: Any, end: Any, latest: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "batchId": batch,
        "numInputRows": rows,
        "processedRowsPerSecond": 500.0,
        "durationMs": {"addBatch": 30, "triggerExecution": 40},
        "sources": [{"startOffset": start, "endOffset": end, "latestOffset": latest}],
    }


def test_rows_add_up_and_lag_is_what_was_not_read() -> None:
    query = QueryProgress("q")
    assert (query.lag, query.fraction) == (None, None)
    first = report(0, 10, offsets(a=0, b=5), offsets(a=10, b=5), offsets(a=20, b=15))
    for _ in range(2):
        query.note(first)
    assert (query.batches, query.rows, query.lag) == (1, 10, 20)
    assert query.fraction == 10 / 30
    assert (query.rows_per_second, query.batch_ms) == (500.0, 40)
    ends = json.dumps(offsets(a=20, b=15))
    query.note(report(1, 20, json.dumps(offsets(a=10, b=5)), ends, ends))
    assert (query.batches, query.rows, query.lag, query.fraction) == (2, 30, 0, 1.0)


def test_a_trigger_without_rows_keeps_the_numbers_of_the_last_batch() -> None:
    query = QueryProgress("q")
    here = offsets(a=10)
    query.note(report(0, 10, offsets(a=0), here, here))
    query.note({**report(0, 0, here, here, offsets(a=12)), "durationMs": {}})
    assert (query.rows, query.batch_ms, query.lag) == (10, 40, 2)


def test_an_idle_trigger_does_not_hide_the_rows_of_the_next_batch() -> None:
    query = QueryProgress("q")
    here, there = offsets(a=10), offsets(a=15)
    query.note(report(0, 10, offsets(a=0), here, here))
    idle = {"triggerExecution": 3, "latestOffset": 3}
    query.note({**report(1, 0, here, here, here), "durationMs": idle})
    assert (query.batches, query.rows) == (1, 10)
    query.note(report(1, 5, here, there, there))
    assert (query.batches, query.rows, query.lag) == (2, 15, 0)


def test_a_batch_without_rows_counts() -> None:
    """Spark runs one to close windows, after the watermark has moved."""
    query = QueryProgress("q")
    query.note(report(0, 10, offsets(a=0), offsets(a=10), offsets(a=10)))
    query.note(report(1, 0, offsets(a=10), offsets(a=10), offsets(a=10)))
    assert (query.batches, query.rows) == (2, 10)


def test_numbers_are_told_to_scripts() -> None:
    query = QueryProgress("q")
    query.note(report(0, 10, offsets(a=0), offsets(a=10), offsets(a=30)))
    assert query.as_json() == {
        "query": "q",
        "batches": 1,
        "rows": 10,
        "rows_per_second": 500.0,
        "batch_ms": 40,
        "lag": 20,
        "done": 0.3333,
    }


def test_a_source_of_another_kind_has_no_lag() -> None:
    query = QueryProgress("q")
    query.note(report(0, 3, None, "17", None))
    assert (query.rows, query.lag, query.fraction) == (3, None, None)
    assert read_offsets("not json") == {}
