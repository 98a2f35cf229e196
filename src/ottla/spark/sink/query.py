"""A stream into topics: `to_log`, and where it finds its cluster."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.spark.errors import SparkError
from ottla.spark.options import BOOTSTRAP
from ottla.spark.sessions.session import BOOTSTRAP_SETTING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def to_log(
    frame: "DataFrame",
    *,
    checkpoint: str | os.PathLike[str],
    bootstrap: str | None = None,
    topic: str | None = None,
    topic_column: str | None = None,
    options: Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> "StreamingQuery":
    """Start a query that writes rows to `topic`, or each to what its `topic_column` says.

    At least once: no row is lost, but after a failure some may be there twice. `options` are those
    of the sink, `trigger` is what Spark's `trigger` takes.
    """
    if not frame.isStreaming:
        raise SparkError("to_log writes a stream: use frame.write.format('ottla') for a batch")
    if topic_column is not None and topic_column != "topic":
        frame = frame.drop("topic").withColumnRenamed(topic_column, "topic")
    where = find_bootstrap(frame.sparkSession, bootstrap)
    writer = (
        frame.writeStream.format("ottla")
        .option(BOOTSTRAP, where)
        .option("checkpointLocation", os.fspath(checkpoint))
    )
    if topic is not None:
        writer = writer.option("topic", topic)
    if options:
        writer = writer.options(**options)
    if name is not None:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


def find_bootstrap(spark: "SparkSession", given: str | None) -> str:
    """The addresses that were given, or those of the session."""
    found = given or spark.conf.get(BOOTSTRAP_SETTING, None)
    if not found:
        raise SparkError(f"no broker is named: give bootstrap=, or set {BOOTSTRAP_SETTING}")
    return found
