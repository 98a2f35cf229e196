"""What a task of Spark does: fetches a range of offsets and hands it over as Arrow batches.

Memory is bounded by the size of a fetch and of what it unfolds to, never by the range.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ottla.model.types import Offset
from ottla.spark.source.source import Manner, Source

if TYPE_CHECKING:
    import pyarrow as pa


class Task(InputPartition):
    """A range of one partition; Spark sends it to whoever is to read it."""

    def __init__(self, source: Source, start: Offset, end: Offset) -> None:
        self.source = source
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Task({self.source} offsets {self.start} to {self.end - 1})"


def read(task: Task, manner: Manner, columns: tuple[str, ...]) -> "Iterator[pa.RecordBatch]":
    from ottla.spark.arrow.columnar import Decoder
    from ottla.spark.source.fetching import Fetcher

    source = task.source
    decoder = Decoder(source.topic, source.partition, columns)
    fetcher = Fetcher(source, manner, task.start, task.end)
    for fetched in fetcher.fetches():
        if fetched.placed:
            yield from decoder.decode(fetched.data, fetched.placed, fetched.start, task.end)
