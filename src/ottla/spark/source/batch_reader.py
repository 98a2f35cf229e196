"""`spark.read.format("ottla")`: all between two bounds, as they are when it starts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.model.types import Offset, TopicPartition
from ottla.spark.arrow.schema import spark_schema
from ottla.spark.errors import BadOption
from ottla.spark.source.discovery import Discovery
from ottla.spark.source.options import SourceOptions, source_options
from ottla.spark.source.planning import Range, split
from ottla.spark.source.pushdown import Restriction, restriction
from ottla.spark.source.source import Manner
from ottla.spark.source.task import Task, read

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._manner = manner_of(options)
        self._restriction = Restriction()

    def partitions(self) -> list[Task]:
        options = self._options
        with Discovery(options) as discovery:
            discovery.check_topics()
            places = [
                place for place in discovery.partitions() if self._restriction.has_place(place)
            ]
            starts = discovery.resolve(options.starting, places)
            ends = discovery.resolve(options.ending, places)
            ranges = self._restricted(discovery, _ranges(options, starts, ends))
            tasks = split(
                ranges,
                partitions_min=options.partitions_min,
                records_max=options.records_per_partition_max,
            )
            sources = discovery.sources({one.place for one in tasks})
        return [Task(sources[one.place], one.start, one.end) for one in tasks]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not isinstance(partition, Task):
            return iter(())  # Spark makes a partition of its own where there is none.
        return read(partition, self._manner, self._options.columns)

    def _restricted(self, discovery: Discovery, ranges: list[Range]) -> list[Range]:
        """Only the offsets that the filters leave, as far as offsets can tell."""
        ranges = [self._restriction.cut(one) for one in ranges]
        time_ms = self._restriction.time_ms_min
        if time_ms is None or not ranges:
            return ranges
        firsts = discovery.earliest_at({one.place: time_ms for one in ranges})
        cut = []
        for one in ranges:
            first = firsts[one.place]
            if first is not None:  # Where all records are older, none is left.
                cut.append(one._replace(start=max(one.start, first)))
        return cut


class PushdownReader(BatchReader):
    """Spark refuses a reader that takes filters while its setting for that is off."""

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":  # noqa: N802
        self._restriction, left = restriction(filters)
        return left


def batch_reader(schema: "StructType", options: Mapping[str, str]) -> BatchReader:
    parsed = source_options(options, is_stream=False)
    check_schema(schema, parsed.columns)
    return PushdownReader(parsed) if parsed.has_pushdown else BatchReader(parsed)


def manner_of(options: SourceOptions) -> Manner:
    return Manner(
        options.access,
        options.isolation,
        options.fetch_bytes,
        options.wait_ms,
        options.fails_on_data_loss,
    )


def check_schema(schema: "StructType", columns: tuple[str, ...]) -> None:
    """A schema of the user's own would be silently ignored; the columns are what they are."""
    expected = spark_schema(columns)
    if schema != expected:
        text = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        why = "the source has columns of its own: leave out schema(), and choose with 'columns'"
        raise BadOption("schema", text, why)


def _ranges(
    options: SourceOptions,
    starts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
) -> list[Range]:
    ranges = []
    for place, start in sorted(starts.items()):
        end = ends[place]
        if start > end and options.starting.offsets is not None and options.ending.offsets:
            name = f"{place.topic}-{place.partition}"
            why = f"{name} would begin at {start}, after it ends at {end}"
            raise BadOption(options.ending.option, options.ending.text, why)
        ranges.append(Range(place, start, max(start, end)))
    return ranges
