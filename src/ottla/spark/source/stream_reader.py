"""`spark.readStream.format("ottla")`: what the driver decides at each micro-batch.

Spark keeps one of these in a process beside the driver for as long as the query runs, and makes
others in the tasks, which only read. A trigger costs one ListOffsets per leader; partitions are
looked up every half minute. Progress goes to a consumer group from `latestOffset`: the start that
Spark gives there is done work, at every trigger, also at the last one.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.errors import ClientError
from ottla.model.types import Offset, TopicPartition
from ottla.spark.errors import BadOption, DataLoss, NoTopic
from ottla.spark.source.batch_reader import check_schema, manner_of
from ottla.spark.source.discovery import Discovery
from ottla.spark.source.offsets import Progress
from ottla.spark.source.options import SourceOptions, source_options
from ottla.spark.source.planning import Range, limited, split
from ottla.spark.source.task import Task, read

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.spark.source.sampling import Sampler

log = logging.getLogger("ottla.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, schema: "StructType", options: Mapping[str, str]) -> None:
        self._options = source_options(options, is_stream=True)
        check_schema(schema, self._options.columns)
        self._manner = manner_of(self._options)
        self._driver: Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_driver": None}  # Tasks open connections of their own.

    @property
    def driver(self) -> "Driver":
        if self._driver is None:
            self._driver = Driver(self._options)
        return self._driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self.driver.initial().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Which one does not matter, as Spark knows no two at once: `Driver` has the options.

        Only that Spark gives it back, and not `ReadAllAvailable`, tells that limits are wanted.
        """
        options = self._options
        if options.offsets_max is not None:
            return ReadMaxRows(options.offsets_max)
        if options.bytes_max is not None:
            return ReadMaxBytes(options.bytes_max)
        if options.offsets_min is not None:
            return ReadMinRows(options.offsets_min)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        is_limited = not isinstance(limit, ReadAllAvailable)
        return self.driver.advance(Progress.from_json(start), is_limited=is_limited).as_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        latest = self.driver.latest
        return None if latest is None else latest.as_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.driver.stop_at_present_end()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        return self.driver.tasks(Progress.from_json(start), Progress.from_json(end))

    def read(self, partition: Task) -> "Iterator[pa.RecordBatch]":
        return read(partition, self._manner, self._options.columns)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: Spark never calls it for the last batch, so `latestOffset` commits."""

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None


class Driver:
    """The side of a stream that talks to the cluster about where it is and where it goes."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._discovery = Discovery(options)
        self._sampler: Sampler | None = None  # Only a stream with a limit in bytes needs it.
        self.latest: Progress | None = None  # As last asked for.
        self._final: Progress | None = None  # Where a query that takes what there is stops.
        self._triggered_at: float | None = None
        self._committed: dict[TopicPartition, Offset] = {}
        self._has_committed = False

    def close(self) -> None:
        self._discovery.close()

    def initial(self) -> Progress:
        self._discovery.check_topics()
        places = self._discovery.partitions()
        offsets = self._discovery.resolve(self._options.starting, places)
        return self._progress(offsets)

    def stop_at_present_end(self) -> None:
        places = self._discovery.partitions(is_anew=True)
        self._final = self._progress(self._discovery.ends(places))

    def advance(self, start: Progress, *, is_limited: bool) -> Progress:
        """Where the next micro-batch ends; `start` itself if there is nothing to do."""
        self._commit(start)
        end = self._newest(start)
        self.latest = end
        if self._final is not None:
            end = _not_beyond(end, self._final)
        ranges = _ranges(start, end)
        if not any(one.size for one in ranges):
            # New partitions without a record change nothing, so that no empty batch is run; a
            # topic that is gone, or a log that was cut, does: the stream goes on from there.
            is_less = set(end.ids) != set(start.ids) or any(
                offset < start.offsets.get(place, 0) for place, offset in end.offsets.items()
            )
            return end if is_less else start
        if is_limited:
            if self._is_to_wait(ranges):
                return start
            end = self._limited(end, ranges)
        self._triggered_at = time.monotonic()
        return end

    def tasks(self, start: Progress, end: Progress) -> list[Task]:
        ranges = split(
            _ranges(start, end),
            partitions_min=self._options.partitions_min,
            records_max=self._options.records_per_partition_max,
        )
        if not ranges:
            return []
        self._discovery.partitions()
        sources = self._discovery.sources(dict.fromkeys(one.place for one in ranges))
        made = []
        for one in ranges:
            source = sources[one.place]
            planned = end.ids.get(one.place.topic, source.topic_id)
            made.append(Task(source.with_id(planned), one.start, one.end))
        return made

    def _newest(self, start: Progress) -> Progress:
        """The ends of all logs now, with what the stream has of topics that are gone."""
        end = self._ends(is_anew=False)
        offsets = {} if end is None else end.offsets
        if any(offsets.get(place, -1) < offset for place, offset in start.offsets.items()):
            end = self._ends(is_anew=True)  # Before it is called a loss, look again.
        end = Progress() if end is None else end
        for topic in start.ids:
            if topic not in end.ids:
                self._lose(f"topic {topic!r} is gone")
            elif not start.has_same_topic(end, topic):
                self._lose(f"topic {topic!r} was deleted and made anew under the same name")
        for place, offset in start.offsets.items():
            latest = end.offsets.get(place)
            if latest is not None and latest < offset and start.has_same_topic(end, place.topic):
                name = f"{place.topic}-{place.partition}"
                self._lose(f"{name} was read up to offset {offset}, but its log ends at {latest}")
        return end

    def _ends(self, *, is_anew: bool) -> Progress | None:
        """None if a topic vanished while it was asked for."""
        places = self._discovery.partitions(is_anew=is_anew)
        try:
            return self._progress(self._discovery.ends(places))
        except NoTopic:
            return None

    def _lose(self, what: str) -> None:
        if self._options.fails_on_data_loss:
            raise DataLoss(f"{what}; to go on with what there is, set failOnDataLoss to false")
        log.warning("%s; going on, since failOnDataLoss is false", what)

    def _is_to_wait(self, ranges: list[Range]) -> bool:
        """Whether there is less than is worth a micro-batch, and the wait was not too long."""
        least = self._options.offsets_min
        if least is None or self._triggered_at is None or self._final is not None:
            return False
        waited_ms = (time.monotonic() - self._triggered_at) * 1000
        is_little = sum(one.size for one in ranges) < least
        return is_little and waited_ms < self._options.trigger_delay_ms_max

    def _limited(self, end: Progress, ranges: list[Range]) -> Progress:
        offsets = dict(end.offsets)
        if self._options.offsets_max is not None:
            offsets |= limited(ranges, self._options.offsets_max)
        if self._options.bytes_max is not None:
            rest = [
                Range(one.place, one.start, offsets[one.place])
                for one in ranges
                if offsets[one.place] > one.start
            ]
            offsets |= self._sampled().ends(
                rest,
                self._options.bytes_max,
                lambda: self._discovery.sources([one.place for one in rest]),
            )
        return Progress(offsets, end.ids)

    def _sampled(self) -> "Sampler":
        if self._sampler is None:
            from ottla.spark.source.sampling import Sampler

            self._sampler = Sampler(self._options.access)
        return self._sampler

    def _progress(self, offsets: Mapping[TopicPartition, Offset]) -> Progress:
        topics = dict.fromkeys(place.topic for place in offsets)
        return Progress(dict(offsets), {name: self._discovery.topic_id(name) for name in topics})

    def _commit(self, start: Progress) -> None:
        """Tell the group how far the stream is. Its first failure is the user's to know."""
        group = self._options.group
        if group is None or start.offsets == self._committed or not start.offsets:
            return
        try:
            self._discovery.commit(group, start.offsets)
        except ClientError as failure:
            if not self._has_committed:
                raise BadOption("group", group, f"offsets cannot be committed: {failure}") from None
            log.warning("group %r: offsets were not committed: %s", group, failure)
            return
        self._committed, self._has_committed = dict(start.offsets), True


def _ranges(start: Progress, end: Progress) -> list[Range]:
    """What lies between; a partition or a topic that is new is read from its first offset."""
    ranges = []
    for place, last in sorted(end.offsets.items()):
        first = start.offsets.get(place, 0)
        if not start.has_same_topic(end, place.topic):
            first = 0
        ranges.append(Range(place, min(first, last), last))
    return ranges


def _not_beyond(end: Progress, final: Progress) -> Progress:
    kept = {
        place: min(offset, final.offsets[place])
        for place, offset in end.offsets.items()
        if place in final.offsets and end.has_same_topic(final, place.topic)
    }
    return Progress(kept, {topic: end.ids[topic] for topic in {place.topic for place in kept}})
