from typing import Any

import pytest

from ottla.spark.pipelines.build import Planned
from ottla.spark.pipelines.model import Declaration, PipelineError
from ottla.spark.pipelines.run import Running


class Query:
    """What Spark's queries are, as far as `Running` is concerned."""

    def __init__(self) -> None:
        self.isActive = True
        self.recentProgress: list[dict[str, Any]] = []
        self.status: dict[str, Any] = {"isTriggerActive": False, "message": "Waiting"}
        self.failure: str | None = None

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> str | None:
        return self.failure

    def stop(self) -> None:
        self.isActive = False


def started(*queries: Query) -> Running:
    planned = [
        Planned(f"q{index}", 10 + index, lambda query=query: query)  # type: ignore[misc]
        for index, query in enumerate(queries)
    ]
    return Running(Declaration("p.yaml"), planned)


def test_queries_are_stopped_between_their_micro_batches() -> None:
    idle, busy = Query(), Query()
    busy.status["isTriggerActive"] = True
    running = started(idle, busy)
    assert not running.stop_idle()
    assert (idle.isActive, busy.isActive) == (False, True)
    busy.status["isTriggerActive"] = False
    assert running.stop_idle()
    assert not running.is_active


def test_a_query_that_fails_is_told_with_the_line_it_comes_from() -> None:
    good, bad = Query(), Query()
    good.recentProgress = [
        {
            "batchId": 0,
            "numInputRows": 3,
            "sources": [],
            "timestamp": "2026-11-16T05:00:00Z",
            "durationMs": {"addBatch": 5},
        }
    ]
    running = started(good, bad)
    bad.failure = "ottla.spark.errors.DataLoss: offsets 3 to 7 are gone"
    with pytest.raises(PipelineError, match=r"p\.yaml:11: q1: offsets 3 to 7 are gone") as caught:
        running.poll()
    assert caught.value.trace == bad.failure
    assert running.progress["q0"].rows == 3


def test_a_query_that_a_busy_machine_could_not_start_is_started_again() -> None:
    made: list[Query] = []

    def start() -> Any:  # noqa: ANN401
        made.append(Query())
        made[-1].failure = "[X] Python worker failed to connect back." if len(made) < 3 else None
        return made[-1]

    running = Running(Declaration("p.yaml"), [Planned("a", 1, start)])
    for _ in range(3):
        running.poll()
    assert len(made) == 3


def test_if_one_cannot_be_started_none_is_left() -> None:
    first = Query()

    def fail() -> Any:  # noqa: ANN401
        raise PipelineError("p.yaml", 3, "no")

    with pytest.raises(PipelineError):
        Running(Declaration("p.yaml"), [Planned("a", 1, lambda: first), Planned("b", 3, fail)])
    assert not first.isActive
