"""The running queries of a pipeline: started together, watched, and stopped between micro-batches.

A query that fails ends the pipeline: the others are stopped, and the error names the query's line
in the file.
"""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.spark.pipelines.build import Builder, Plan, Planned
from ottla.spark.pipelines.failures import line_in, sentence_of
from ottla.spark.pipelines.model import Declaration
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.sessions.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

STOP_S_MAX: Final = 20.0  # For running micro-batches; then they are interrupted.
# Spark allows a Python process ten seconds to start, which may be too short on a busy machine.
TOO_BUSY: Final = "Python worker failed to connect back"
STARTS_MAX: Final = 4
INITIALIZING: Final = "Initializing sources"
INITIALIZING_S_MAX: Final = 30.0
POLL_S: Final = 0.05
# PySpark logs each query error with its stack, in JSON; we report one sentence.
LOGGERS_OF_MISTAKES: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def open_session(declared: Declaration, master: str | None) -> "SparkSession":
    """A session for this pipeline; `master` takes precedence over the file."""
    chosen = master or declared.master or os.environ.get("SPARK_MASTER")
    if not chosen or chosen.startswith("local"):  # Spark's pages are for this machine only.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    made = session(declared.name, master=chosen, **declared.spark)
    made.sparkContext.setLogLevel("OFF")
    from pyspark.logger import PySparkLogger

    for name in LOGGERS_OF_MISTAKES:
        PySparkLogger.getLogger(name).disabled = True
    return made


class Running:
    def __init__(self, declared: Declaration, planned: Sequence[Planned]) -> None:
        """Start all queries; if one cannot be started, all are stopped."""
        self._declared = declared
        self._queries: dict[str, StreamingQuery] = {}
        self._planned = {each.name: each for each in planned}
        self._starts = dict.fromkeys(self._planned, 0)
        self._seen: dict[str, str] = {}  # Time of the last report of each query.
        self.progress = {each.name: QueryProgress(each.name) for each in planned}
        try:
            for each in planned:
                self._start(each)
        except BaseException:
            self.stop()
            raise

    @property
    def is_active(self) -> bool:
        return any(query.isActive for query in self._queries.values())

    def poll(self) -> None:
        """Process new reports; PipelineError if a query has failed."""
        for name, query in list(self._queries.items()):
            last = query.lastProgress
            if last is not None and last["timestamp"] != self._seen.get(name):
                self._seen[name] = last["timestamp"]
                for report in query.recentProgress:
                    self.progress[name].note(report)
            failure = query.exception()
            if failure is not None:
                self._failed(self._planned[name], failure)

    def _start(self, planned: Planned) -> None:
        """Start a query and wait for its sources to open: all at once would start many
        processes.
        """
        self._starts[planned.name] += 1
        query = self._queries[planned.name] = planned.start()
        deadline = time.monotonic() + INITIALIZING_S_MAX
        while query.isActive and query.status["message"] == INITIALIZING:
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)

    def _failed(self, planned: Planned, failure: object) -> None:
        if TOO_BUSY in str(failure) and self._starts[planned.name] < STARTS_MAX:
            self._start(planned)
            return
        sentence = f"{planned.name}: {sentence_of(failure)}"
        line = line_in(self._declared.file, failure) or planned.line
        error = self._declared.wrong(line, sentence)
        error.trace = str(failure)
        raise error

    def stop_idle(self) -> bool:
        """Stop the queries that are between two micro-batches; returns whether none is left."""
        for query in self._queries.values():
            if query.isActive and not query.status["isTriggerActive"]:
                query.stop()
        return not self.is_active

    def stop(self) -> None:
        """Stop all of them at once; an interrupted micro-batch is repeated next time."""
        for query in self._queries.values():
            query.stop()


def prepare(declared: Declaration, spark: "SparkSession", *, is_once: bool) -> Plan:
    """Build and check everything, without starting or creating anything."""
    return Builder(declared, spark, is_once=is_once).build()
