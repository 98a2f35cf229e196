"""A pipeline in YAML; errors are collected in the declaration, each with its line."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final

import yaml

from ottla.spark.pipelines.model import Declaration, PipelineError, Sink, Source, Step, suggestion

SCALARS: Final = ("name", "bootstrap", "checkpoints", "master", "trigger")
SECTIONS: Final = ("spark", "sources", "steps", "sinks")
RENAMED: Final = {"from": "source"}  # Names in the file that are keywords in Python.
OF_ALL: Final = ("name", "line", "lines", "is_broken")
Node = Any


def read_yaml(file: str, text: str) -> Declaration:
    """PipelineError only if it is no YAML at all; `check` raises the other errors."""
    return _Reader(file).declaration(text)


class _Reader:
    def __init__(self, file: str) -> None:
        self._declared = Declaration(file)

    def declaration(self, text: str) -> Declaration:
        declared = self._declared
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as failure:
            mark = failure.problem_mark or failure.context_mark
            line = mark.line + 1 if mark else 1
            raise declared.wrong(line, f"this is no YAML: {failure.problem}") from failure
        if not isinstance(root, yaml.MappingNode):
            raise declared.wrong(1, "a pipeline has sources, steps and sinks")
        with self._collected():
            for key, node in self._entries(root, (*SCALARS, *SECTIONS), "a pipeline"):
                with self._collected():
                    self._part(key, node)
        return declared

    def _part(self, key: str, node: Node) -> None:
        if key in SCALARS:
            setattr(self._declared, key, self._text(node, key))
        elif key == "spark":
            self._declared.spark = self._texts(node, key)
        else:
            self._section(key, node)

    @contextmanager
    def _collected(self) -> Iterator[None]:
        """Keep an error, and go on."""
        try:
            yield
        except PipelineError as failure:
            self._declared.errors.append(failure)

    def _section(self, key: str, node: Node) -> None:
        for name, line, value in self._named(node, key):
            if key == "sources":
                self._declared.sources.append(self._filled(Source(name, line), value))
            elif key == "sinks":
                self._declared.sinks.append(self._filled(Sink(name, line), value))
            else:
                step = Step(name, line, sql="")  # Keeps the name, if there is an error in it.
                with self._collected():
                    step = self._step(name, line, value)
                self._declared.steps.append(step)

    def _step(self, name: str, line: int, node: Node) -> Step:
        """`name: SELECT …`, or `name: {sql: SELECT …}`."""
        if isinstance(node, yaml.ScalarNode):
            return Step(name, self._first_line(node), sql=node.value)
        for _, value in self._entries(node, ("sql",), f"step {name!r}"):
            sql = self._text(value, "sql")
            return Step(name, self._first_line(value), sql=sql)
        raise self._declared.wrong(line, f"step {name!r} has no SQL")

    def _filled(self, made: Any, node: Node) -> Any:  # noqa: ANN401
        """A source or a sink with the values of the file."""
        kind = type(made).__name__.lower()
        names = [item.name for item in fields(made) if item.name not in OF_ALL]
        spelled = {written: name for written, name in RENAMED.items() if name in names}
        allowed = [*spelled, *(name for name in names if name not in spelled.values())]
        before = len(self._declared.errors)
        with self._collected():
            for key, value in self._entries(node, allowed, f"{kind} {made.name!r}"):
                attribute = spelled.get(key, key)
                made.lines[attribute] = value.start_mark.line + 1
                with self._collected():
                    setattr(made, attribute, self._value(made, attribute, key, value))
        made.is_broken = len(self._declared.errors) > before
        return made

    def _value(self, made: Any, attribute: str, key: str, node: Node) -> object:  # noqa: ANN401
        if attribute == "options":
            made.lines |= {name: line for name, line, _ in self._named(node, key)}
            return self._texts(node, key)
        return self._list(node, key) if attribute == "key" else self._text(node, key)

    def _entries(
        self, node: Node, allowed: tuple[str, ...] | list[str], who: str
    ) -> Iterator[tuple[str, Node]]:
        seen: set[str] = set()
        for key, line, value in self._named(node, who):
            wrong = ""
            if key not in allowed:
                hint = suggestion(key, allowed) or f"; it may have {', '.join(allowed)}"
                wrong = f"{who} has no {key!r}{hint}"
            elif key in seen:
                wrong = f"{who} has {key!r} twice"
            if wrong:
                self._declared.errors.append(self._declared.wrong(line, wrong))
                continue
            seen.add(key)
            yield key, value

    def _named(self, node: Node, who: str) -> Iterator[tuple[str, int, Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, f"{who} must be a mapping of names")
        for key, value in node.value:
            yield str(key.value), key.start_mark.line + 1, value

    def _texts(self, node: Node, who: str) -> dict[str, str]:
        return {key: self._text(value, key) for key, _, value in self._named(node, who)}

    def _list(self, node: Node, who: str) -> list[str]:
        if isinstance(node, yaml.SequenceNode):
            return [self._text(item, who) for item in node.value]
        return [self._text(node, who)]

    def _text(self, node: Node, who: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._wrong(node, f"{who!r} must be a text")
        return str(node.value)

    def _wrong(self, node: Node, sentence: str) -> PipelineError:
        return self._declared.wrong(node.start_mark.line + 1, sentence)

    @staticmethod
    def _first_line(node: Node) -> int:
        """The first line of the text itself: a block starts after the line with its `|`."""
        line: int = node.start_mark.line
        return line + (2 if node.style in ("|", ">") else 1)
