"""A declared pipeline as Spark frames and queries, checked by Spark and the brokers.

Nothing is started or created here: all frames are built and all topics, tables and checkpoints
checked first, so that all errors are reported together, before any row is read.
"""

import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.dead_letters import split
from ottla.spark.delta.delta import checked_sink, to_delta
from ottla.spark.errors import BadOption, SparkError
from ottla.spark.options import BOOTSTRAP
from ottla.spark.pipelines.checkpoints import Checkpoint, Owner, topics_of
from ottla.spark.pipelines.failures import sentence_of
from ottla.spark.pipelines.model import (
    Declaration,
    PipelineError,
    Sink,
    Source,
    Step,
    raise_all,
)
from ottla.spark.pipelines.topics import Topics
from ottla.spark.sink.options import read_options
from ottla.spark.sink.query import to_log
from ottla.spark.sink.rows import Layout
from ottla.spark.source.options import source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

PLACE_IN_SQL: Final = re.compile(r"line (\d+),? pos(?:ition)? \d+")


@dataclass(frozen=True, slots=True)
class Planned:
    """A query that is ready to start."""

    name: str
    line: int
    start: "Callable[[], StreamingQuery]"


@dataclass(frozen=True, slots=True)
class Plan:
    queries: list[Planned]
    notes: list[str]  # Sentences about what the queries will create.


class Builder:
    def __init__(self, declared: Declaration, spark: "SparkSession", *, is_once: bool) -> None:
        self._declared = declared
        self._spark = spark
        self._topics = Topics(declared.bootstrap)
        self._frames: dict[str, DataFrame] = {}
        self._broken: set[str] = set()  # Names of sources and steps with errors.
        self._errors: list[PipelineError] = []
        self._planned: list[Planned] = []
        self._trigger: dict[str, Any] = {}
        if is_once:
            self._trigger = {"availableNow": True}
        elif declared.trigger is not None:
            self._trigger = {"processingTime": declared.trigger}

    def build(self) -> Plan:
        with self._topics:
            self._check_source_topics()
            for source in self._declared.sources:
                with self._collected(source.name), self._errors_at(source.line):
                    self._add(source.name, self._source(source))
            for step in self._declared.steps:
                if step.reads(self._broken):
                    self._broken.add(step.name)
                    continue
                with self._collected(step.name), self._errors_at(step.line, step):
                    self._add(step.name, self._step(step))
            for sink in self._declared.sinks:
                if sink.source not in self._broken:
                    with self._collected(), self._errors_at(sink.line):
                        self._sink(sink)
        raise_all(self._errors)
        return Plan(self._planned, list(self._topics.missing.values()))

    @contextmanager
    def _collected(self, name: str | None = None) -> Iterator[None]:
        """Keep an error, and go on; elements that depend on `name` are not checked."""
        try:
            yield
        except PipelineError as failure:
            self._errors.append(failure)
            if name is not None:
                self._broken.add(name)

    def _add(self, name: str, frame: "DataFrame") -> None:
        self._frames[name] = frame
        frame.createOrReplaceTempView(name)

    def _check_source_topics(self) -> None:
        for source in self._declared.sources:
            for topic in (source.topic or "").split(","):
                if topic.strip():
                    with self._collected(), self._errors_at(source.at("topic")):
                        self._topics.check_source(topic.strip())

    def _source(self, source: Source) -> "DataFrame":
        if source.path is not None:
            kind = source.format or "parquet"
            return self._spark.read.format(kind).options(**source.options).load(source.path)
        options = {
            BOOTSTRAP: self._declared.bootstrap,
            "startingOffsets": source.start,
            "includeHeaders": "true",
            **source.options,
        }
        options["subscribe" if source.topic else "subscribePattern"] = (
            source.topic or source.pattern or ""
        )
        if source.group is not None:
            options["group"] = source.group
        with self._errors_at(source.line, lines=source.lines):
            source_options(options, is_stream=True)
        frame = self._spark.readStream.format("ottla").options(**options).load()
        if source.schema is not None:
            frame = self._good(source, frame)
        if source.watermark is not None:
            column, delay = source.watermark.split(None, 1)
            frame = frame.withWatermark(column, delay)
        return frame

    def _good(self, source: Source, frame: "DataFrame") -> "DataFrame":
        """The rows that can be parsed; a separate query writes the rest."""
        from pyspark.sql.types import StructType

        assert source.schema is not None, "there is something to parse"
        assert source.dead_letter is not None, "the declaration was checked"
        with self._errors_at(source.at("dead_letter")):
            self._topics.check_target(source.dead_letter)
        with self._errors_at(source.at("schema")):
            schema = StructType.fromDDL(source.schema)
        with self._errors_at(source.at("valid" if source.valid else "schema")):
            good, dead = split(
                frame,
                schema,
                dead_letter=source.dead_letter,
                valid=source.valid,
                name=self._declared.name,
            )
        name, letters = f"{source.name}_dead_letters", source.dead_letter
        checkpoint = self._checkpoint(name, dead, f"topic {letters}")
        self._plan_log(name, source.line, dead, checkpoint, into=letters, topic=None, options={})
        return good

    def _step(self, step: Step) -> "DataFrame":
        from pyspark.sql import DataFrame

        if step.sql is not None:
            return self._spark.sql(step.sql)
        assert step.function is not None, "the declaration was checked"
        made = step.function(*(self._frames[name] for name in step.inputs))
        if not isinstance(made, DataFrame):
            raise SparkError(f"step {step.name!r} gave a {type(made).__name__}, not a DataFrame")
        return made

    def _sink(self, sink: Sink) -> None:
        frame = self._frames[sink.source]
        if not frame.isStreaming:
            raise SparkError(f"{sink.source!r} is no stream: nothing of it comes from a topic")
        checkpoint = self._checkpoint(sink.name, frame, sink.target)
        if sink.delta is not None:
            self._plan_delta(sink, frame, checkpoint)
        elif sink.parquet is not None:
            self._plan_parquet(sink, frame, checkpoint)
        else:
            frame = as_records(frame, sink)
            if sink.topic is not None:
                with self._errors_at(sink.at("topic")):
                    self._topics.check_target(sink.topic)
            self._plan_log(
                sink.name,
                sink.line,
                frame,
                checkpoint,
                into=sink.topic,
                topic=sink.topic,
                options=sink.options,
            )

    def _plan_log(
        self,
        name: str,
        line: int,
        frame: "DataFrame",
        checkpoint: Checkpoint,
        *,
        into: str | None,
        topic: str | None,
        options: dict[str, str],
    ) -> None:
        """`into` is the one topic of all rows, if it is known; `topic` takes precedence over the
        column.
        """
        bootstrap = self._declared.bootstrap
        read_options({BOOTSTRAP: bootstrap, **options})
        Layout.of(frame.schema, topic)

        def start() -> "StreamingQuery":
            if into in self._topics.missing:
                with Topics(bootstrap) as topics:
                    topics.create(into)
            return to_log(
                frame,
                checkpoint=checkpoint.path,
                bootstrap=bootstrap,
                topic=topic,
                options=options,
                trigger=self._trigger,
                name=name,
            )

        self._plan(name, line, checkpoint, start)

    def _plan_delta(self, sink: Sink, frame: "DataFrame", checkpoint: Checkpoint) -> None:
        assert sink.delta is not None, "this sink is a table"
        place = sink.delta
        checked_sink(
            frame,
            place,
            key=sink.key,
            sequence=sink.sequence,
            delete=sink.delete,
            storage_options=sink.options,
        )
        self._plan(
            sink.name,
            sink.line,
            checkpoint,
            lambda: to_delta(
                frame,
                place,
                checkpoint=checkpoint.path,
                key=sink.key,
                sequence=sink.sequence,
                delete=sink.delete,
                storage_options=sink.options,
                trigger=self._trigger,
                name=sink.name,
            ),
        )

    def _plan_parquet(self, sink: Sink, frame: "DataFrame", checkpoint: Checkpoint) -> None:
        def start() -> "StreamingQuery":
            writer = (
                frame.writeStream.format("parquet")
                .options(**sink.options)
                .option("path", sink.parquet)
                .option("checkpointLocation", checkpoint.path)
                .queryName(sink.name)
            )
            return (writer.trigger(**self._trigger) if self._trigger else writer).start()

        self._plan(sink.name, sink.line, checkpoint, start)

    def _plan(
        self, name: str, line: int, checkpoint: Checkpoint, start: "Callable[[], StreamingQuery]"
    ) -> None:
        checkpoint.check()

        def started() -> "StreamingQuery":
            with self._errors_at(line):
                checkpoint.claim()
                return start()

        self._planned.append(Planned(name, line, started))

    def _checkpoint(self, query: str, frame: "DataFrame", target: str) -> Checkpoint:
        declared = self._declared
        owner = Owner(topics_of(frame), target)
        return Checkpoint(self._spark, declared.checkpoints, declared.name, query, owner)

    @contextmanager
    def _errors_at(
        self, line: int, step: Step | None = None, lines: Mapping[str, int] | None = None
    ) -> Iterator[None]:
        """Report errors of the block with the line that caused them.

        `lines` are those of options.
        """
        from pyspark.errors import PySparkException

        try:
            yield
        except PipelineError:
            raise
        except BadOption as failure:
            at = (lines or {}).get(failure.option, line)
            raise self._declared.wrong(at, str(failure)) from failure
        except SparkError as failure:
            raise self._declared.wrong(line, str(failure)) from failure
        except PySparkException as failure:
            at = self._line_of(failure, step) or line
            raise self._declared.wrong(at, sentence_of(failure)) from failure
        except Exception as failure:
            if step is None or step.function is None:
                raise
            at = self._line_of(failure, step) or line
            sentence = f"{type(failure).__name__}: {failure}"
            raise self._declared.wrong(at, sentence) from failure

    def _line_of(self, failure: Exception, step: Step | None) -> int | None:
        if step is None:
            return None
        if step.sql is not None:
            found = PLACE_IN_SQL.search(str(failure))
            return step.line + int(found[1]) - 1 if found else None
        frames = traceback.extract_tb(failure.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self._declared.file]
        return lines[-1] if lines else None


def as_records(frame: "DataFrame", sink: Sink) -> "DataFrame":
    """Rows as records of a topic: a frame without `value` is written as JSON of its columns.

    The topic and partition that a row was read from do not determine its target.
    """
    from pyspark.sql import functions as sql

    if sink.topic_column is not None:
        frame = frame.withColumn("__ottla_topic", sql.col(sink.topic_column))
    kept = frame.drop("topic", "partition", "offset", "timestampType")
    if "value" not in kept.columns:
        columns = [name for name in kept.columns if name not in ("key", "headers", "__ottla_topic")]
        kept = kept.withColumn("value", sql.to_json(sql.struct(*[f"`{name}`" for name in columns])))
    if sink.key:
        key = sql.expr(sink.key[0]) if len(sink.key) == 1 else sql.to_json(sql.struct(*sink.key))
        kept = kept.withColumn("key", key.cast("string"))
    if sink.topic_column is not None:
        kept = kept.withColumnRenamed("__ottla_topic", "topic")
    return kept
