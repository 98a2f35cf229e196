"""A stream into a Delta table, exactly once: `to_delta`.

To append, Spark's tasks write Parquet files and the driver adds all files of a micro-batch in one
commit. With a key, the last change of each key is merged. Either way the commit carries query id
and micro-batch, so that a micro-batch that Spark repeats after a failure changes nothing.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.spark.delta.files import ADDED, AddedFile, file_writer
from ottla.spark.delta.table import IS_DELETED, LakeTable, check_table
from ottla.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

QUERY_ID = "sql.streaming.queryId"
INTERRUPTED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling the sink:"
    " java.lang.InterruptedException"
)


def to_delta(
    frame: "DataFrame",
    path: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    key: str | Sequence[str] | None = None,
    sequence: str | None = None,
    delete: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "StreamingQuery":
    """Start a query that keeps a Delta table up to date, and return it.

    Without `key` rows are appended. With it they are merged: the row with the highest `sequence` of
    each key wins, also against the table's row, and a row that satisfies the SQL condition `delete`
    removes its key from the table. `trigger` takes the arguments of Spark's `trigger`, such as
    `{"availableNow": True}`.
    """
    sink = checked_sink(
        frame, path, key=key, sequence=sequence, delete=delete, storage_options=storage_options
    )
    sink.open(frame)
    writer = (
        frame.writeStream.foreachBatch(sink.write)
        .option("checkpointLocation", _absolute(checkpoint))
        .outputMode("update" if key else "append")
    )
    if name is not None:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


def checked_sink(
    frame: "DataFrame",
    path: str | os.PathLike[str],
    *,
    key: str | Sequence[str] | None = None,
    sequence: str | None = None,
    delete: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "DeltaSink":
    """The writer of the micro-batches; raises if an existing table does not fit."""
    keys = [key] if isinstance(key, str) else list(key or ())
    _check(frame, keys, sequence, delete)
    options = dict(storage_options or {})
    check_table(_absolute(path), _arrow_schema(frame), options)
    return DeltaSink(_absolute(path), keys, sequence, delete, options)


class DeltaSink:
    """Writes every micro-batch, in the driver's Python process."""

    def __init__(
        self,
        path: str,
        keys: list[str],
        sequence: str | None,
        delete: str | None,
        storage_options: dict[str, str],
    ) -> None:
        self._path = path
        self._keys = keys
        self._sequence = sequence
        self._delete = delete
        self._storage_options = storage_options
        self._table: LakeTable | None = None

    def open(self, frame: "DataFrame") -> LakeTable:
        if self._table is None:
            self._table = LakeTable(self._path, _arrow_schema(frame), self._storage_options)
        return self._table

    def write(self, frame: "DataFrame", batch: int) -> None:
        """Called by Spark once for each micro-batch, and again after an uncertain attempt."""
        try:
            self._write(frame, batch)
        except Exception as failure:
            if not is_interruption(failure):
                raise
            # Spark matches this text to recognise a stop of its own, and overflows its stack on a
            # long one.
            raise SparkError(INTERRUPTED) from None

    def _write(self, frame: "DataFrame", batch: int) -> None:
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        assert query is not None, "Spark runs this for a query"
        table = self.open(frame)
        if table.has(query, batch):
            return
        if self._keys:
            self._merge(table, query, batch, frame)
        else:
            described = frame.mapInArrow(file_writer(self._path), ADDED).collect()
            if described:
                table.append(query, batch, [AddedFile(*row) for row in described])

    def _merge(self, table: LakeTable, query: str, batch: int, frame: "DataFrame") -> None:
        changes = _last_changes(frame, self._keys, self._sequence, self._delete).toArrow()
        if not changes.num_rows:
            return
        for key in self._keys:
            if count := changes.column(key).null_count:
                raise SparkError(
                    f"{count} changes have no key: column {key!r} is null, which names no row"
                    " (of a record without a value, take the key from the record's key)"
                )
        if changes.select(self._keys).group_by(self._keys).aggregate([]).num_rows < len(changes):
            raise SparkError(
                f"a micro-batch holds several changes of one {', '.join(self._keys)}:"
                " name the column that orders them with sequence="
            )
        table.merge(query, batch, changes, self._keys, self._sequence)


def is_interruption(failure: Exception) -> bool:
    """Whether the error only says that the query was stopped."""
    text = str(failure)
    return "InterruptedException" in text or "SPARK_JOB_CANCELLED" in text


def _last_changes(
    frame: "DataFrame", keys: Sequence[str], sequence: str | None, delete: str | None
) -> "DataFrame":
    from pyspark.sql import functions as sql

    marked = frame.withColumn(IS_DELETED, sql.coalesce(sql.expr(delete or "false"), sql.lit(False)))
    if sequence is None:
        return marked
    whole = sql.struct(*[sql.col(f"`{column}`") for column in marked.columns])
    last = marked.groupBy(*keys).agg(sql.max_by(whole, sql.col(sequence)).alias("last"))
    return last.select("last.*")


def _check(
    frame: "DataFrame", keys: Sequence[str], sequence: str | None, delete: str | None
) -> None:
    if not frame.isStreaming:
        raise SparkError("to_delta keeps a table up to date from a stream: use spark.readStream")
    for name, column in [*(("key", key) for key in keys), ("sequence", sequence)]:
        if column is not None and column not in frame.columns:
            found = ", ".join(frame.columns)
            raise SparkError(f"{name} is {column!r}, but the frame's columns are {found}")
    if not keys and (sequence or delete):
        raise SparkError("sequence and delete say how rows of one key are merged: give key= too")
    if delete is not None:
        frame.where(delete)  # Spark itself reports an invalid condition.


def _arrow_schema(frame: "DataFrame") -> Any:  # noqa: ANN401
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    found = to_arrow_schema(frame.schema, timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in found])


def _absolute(path: str | os.PathLike[str]) -> str:
    """A relative path is relative to the driver's directory, for the executors too."""
    text = os.fspath(path)
    return text if "://" in text else os.path.abspath(text)
