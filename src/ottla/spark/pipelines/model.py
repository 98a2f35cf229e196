"""A declared pipeline: sources, steps and sinks, each with its line in the file.

Pure. YAML and Python files are read into the same declaration, which is checked as a whole before
anything runs; errors name the file and the line.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.spark.errors import SparkError

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PIPELINE_NAME: Final = re.compile(r"\w[\w .-]*")  # Part of a path.


class PipelineError(SparkError):
    """An error in a file: `pipeline.yaml:12: there is no step 'oders'`."""

    def __init__(self, file: str, line: int, sentence: str) -> None:
        super().__init__(f"{file}:{line}: {sentence}")
        self.line = line
        self.sentence = sentence
        self.trace: str | None = None  # Spark's report of a failed query.


class PipelineErrors(SparkError):
    """Several errors in a file, sorted by line."""

    def __init__(self, errors: Iterable[PipelineError]) -> None:
        self.errors = sorted(errors, key=lambda error: error.line)
        super().__init__("\n".join(map(str, self.errors)))


def raise_all(errors: Sequence[PipelineError]) -> None:
    """Nothing if there are none; one as it is."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise PipelineErrors(errors)


@dataclass(slots=True)
class Declared:
    """A named element with the line of its declaration; its parts may have their own lines."""

    name: str
    line: int
    lines: dict[str, int] = field(default_factory=dict, compare=False, repr=False, kw_only=True)
    is_broken: bool = field(default=False, compare=False, repr=False, kw_only=True)

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

    def reads(self, names: Collection[str]) -> bool:
        """True if one of the names is an input, or a word of the SQL."""
        words = re.findall(r"\w+", self.sql) if self.sql is not None else self.inputs
        return any(word in names for word in words)


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

    @property
    def target(self) -> str:
        """As it is written in the file."""
        if self.delta is not None:
            return f"Delta table {self.delta}"
        if self.parquet is not None:
            return f"Parquet files {self.parquet}"
        return f"topic {self.topic}" if self.topic else f"topics of column {self.topic_column}"


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
    errors: list[PipelineError] = field(default_factory=list)  # Found while the file was read.

    def wrong(self, line: int, sentence: str) -> PipelineError:
        return PipelineError(self.file, line, sentence)


def check(declared: Declaration) -> None:
    """Checks that need neither Spark nor a broker.

    Raises all errors, those found by reading the file included. An element that could not be read
    is not checked further.
    """
    checking = _Checking(declared)
    checking.run()
    raise_all(checking.errors)


class _Checking:
    def __init__(self, declared: Declaration) -> None:
        self._declared = declared
        self._known: dict[str, int] = {}  # Lines of sources and steps.
        self.errors = list(declared.errors)

    def run(self) -> None:
        declared, known = self._declared, self._known
        with self._collected():
            _check_pipeline(declared)
        for source in declared.sources:
            with self._collected():
                _check_name(declared, source.name, source.line, known)
            if not source.is_broken:
                with self._collected():
                    _check_source(declared, source)
        for step in declared.steps:
            with self._collected():
                _check_step(declared, step, known)
            with self._collected():
                _check_name(declared, step.name, step.line, known)
        names: dict[str, int] = {}
        for sink in declared.sinks:
            with self._collected():
                _check_name(declared, sink.name, sink.line, names)
            if not sink.is_broken:
                with self._collected():
                    who = f"sink {sink.name!r} writes"
                    _check_known(declared, sink.source, sink.at("source"), who, known)
                with self._collected():
                    _check_sink(declared, sink)

    @contextmanager
    def _collected(self) -> Iterator[None]:
        try:
            yield
        except PipelineError as failure:
            self.errors.append(failure)


def _check_pipeline(declared: Declaration) -> None:
    if not PIPELINE_NAME.fullmatch(declared.name):
        sentence = f"the pipeline's name {declared.name!r} is part of a path: letters and digits"
        raise declared.wrong(1, f"{sentence} first, then also spaces, dots and hyphens")
    if not declared.sources and not declared.errors:
        raise declared.wrong(1, "there are no sources: name at least one topic to read")
    if not declared.sinks and not declared.errors:
        raise declared.wrong(1, "there are no sinks: say where the rows go")


def _check_step(declared: Declaration, step: Step, known: Mapping[str, int]) -> None:
    for name in step.inputs:
        _check_known(declared, name, step.line, f"step {step.name!r} takes", known)
    if (step.sql is None) == (step.function is None):
        raise declared.wrong(step.line, f"step {step.name!r} needs its SQL, or a function")


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
    if name not in known and known:  # Without sources, that is the error.
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
