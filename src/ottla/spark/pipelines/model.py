"""A declared pipeline: sources, steps and sinks, each with its line in the file.

Pure. YAML and Python files are read into the same declaration, which is checked as a whole before
anything runs; errors name the file and the line.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.spark.errors import SparkError

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PipelineError(SparkError):
    """An error in a file: `pipeline.yaml:12: there is no step 'oders'`."""

    def __init__(self, file: str, line: int, sentence: str) -> None:
        super().__init__(f"{file}:{line}: {sentence}")
        self.line = line
        self.sentence = sentence


@dataclass(slots=True)
class Declared:
    """A named element with the line of its declaration; its parts may have their own lines."""

    name: str
    line: int
    lines: dict[str, int] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def at(self, part: str) -> int:
        return self.lines.get(part, self.line)


@dataclass(slots=True)
class Source(Declared):
    """A topic as a stream, or files as a table to join with."""

    topic: str | None = None  # Or several, separated by commas.
    pattern: str | None = None
    path: str | None = None
    format: str | None = None  # Of the files at `path`.
    start: str = "earliest"
    group: str | None = None
    schema: str | None = None  # Schema of the JSON values; without it they stay bytes.
    valid: str | None = None
    dead_letter: str | None = None
    watermark: str | None = None  # A column and the allowed lateness: "timestamp 2 minutes".
    options: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Step:
    """A frame derived from earlier ones, by SQL or by a function of frames."""

    name: str
    line: int
    sql: str | None = None
    function: Callable[..., Any] | None = None
    inputs: tuple[str, ...] = ()  # Of a function: its parameter names.


@dataclass(slots=True)
class Sink(Declared):
    """Target of a frame: a topic, a Delta table, or Parquet files."""

    source: str = ""
    topic: str | None = None
    topic_column: str | None = None
    delta: str | None = None
    parquet: str | None = None
    key: list[str] = field(default_factory=list)
    sequence: str | None = None
    delete: str | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Declaration:
    file: str
    name: str = "pipeline"
    bootstrap: str = "localhost:9092"
    checkpoints: str = "checkpoints"
    master: str | None = None
    trigger: str | None = None  # Interval such as "10 seconds"; without it, as often as possible.
    spark: dict[str, str] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)

    def wrong(self, line: int, sentence: str) -> PipelineError:
        return PipelineError(self.file, line, sentence)


def check(declared: Declaration) -> None:
    """Checks that need neither Spark nor a broker."""
    if not declared.sources:
        raise declared.wrong(1, "there are no sources: name at least one topic to read")
    if not declared.sinks:
        raise declared.wrong(1, "there are no sinks: say where the rows go")
    known: dict[str, int] = {}
    for source in declared.sources:
        _check_name(declared, source.name, source.line, known)
        _check_source(declared, source)
    for step in declared.steps:
        for name in step.inputs:
            _check_known(declared, name, step.line, f"step {step.name!r} takes", known)
        _check_name(declared, step.name, step.line, known)
        if (step.sql is None) == (step.function is None):
            raise declared.wrong(step.line, f"step {step.name!r} needs its SQL, or a function")
    names: dict[str, int] = {}
    for sink in declared.sinks:
        _check_name(declared, sink.name, sink.line, names)
        _check_known(declared, sink.source, sink.at("source"), f"sink {sink.name!r} writes", known)
        _check_sink(declared, sink)


def suggestion(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _check_name(declared: Declaration, name: str, line: int, known: dict[str, int]) -> None:
    if not NAME.fullmatch(name):
        raise declared.wrong(line, f"{name!r} is no name: use letters, digits and underscores")
    if name in known:
        raise declared.wrong(line, f"{name!r} is declared already, on line {known[name]}")
    known[name] = line


def _check_known(
    declared: Declaration, name: str, line: int, who: str, known: Mapping[str, int]
) -> None:
    if name not in known:
        known_names = ", ".join(known)
        hint = suggestion(name, known) or f"; before it come {known_names}"
        raise declared.wrong(line, f"{who} {name!r}, which is no source or step{hint}")


def _check_source(declared: Declaration, source: Source) -> None:
    chosen = [item for item in (source.topic, source.pattern, source.path) if item is not None]
    if len(chosen) != 1:
        sentence = f"source {source.name!r} needs one of topic, pattern and path"
        raise declared.wrong(source.line, sentence)
    if source.schema is None and (source.valid or source.dead_letter):
        sentence = f"source {source.name!r} has no schema, so there is nothing to be dead of"
        raise declared.wrong(source.line, sentence)
    if source.schema is not None and not source.dead_letter:
        sentence = f"source {source.name!r} has a schema: name the dead_letter topic of the rest"
        raise declared.wrong(source.line, sentence)
    if source.watermark is not None and len(source.watermark.split(None, 1)) != 2:
        sentence = f"the watermark {source.watermark!r} is no column and a delay: timestamp 1 hour"
        raise declared.wrong(source.at("watermark"), sentence)


def _check_sink(declared: Declaration, sink: Sink) -> None:
    places = (sink.topic or sink.topic_column, sink.delta, sink.parquet)
    if sum(place is not None for place in places) != 1:
        sentence = f"sink {sink.name!r} needs one of topic, topic_column, delta and parquet"
        raise declared.wrong(sink.line, sentence)
    if sink.delta is None and (sink.sequence or sink.delete):
        sentence = f"sink {sink.name!r}: sequence and delete belong to a Delta table"
        raise declared.wrong(sink.line, sentence)
    if sink.delta is not None and (sink.sequence or sink.delete) and not sink.key:
        sentence = f"sink {sink.name!r}: sequence and delete need the key that rows are merged by"
        raise declared.wrong(sink.line, sentence)
