"""A pipeline in YAML; every error is reported with its line."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import yaml

from ottla.spark.pipelines.model import Declaration, PipelineError, Sink, Source, Step, suggestion

SCALARS: Final = ("name", "bootstrap", "checkpoints", "master", "trigger")
SECTIONS: Final = ("spark", "sources", "steps", "sinks")
RENAMED: Final = {"from": "source"}  # Names in the file that are keywords in Python.
OF_ALL: Final = ("name", "line", "lines")
Node = Any


def read_yaml(file: str, text: str) -> Declaration:
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
        for key, node in self._entries(root, (*SCALARS, *SECTIONS), "a pipeline"):
            if key in SCALARS:
                setattr(declared, key, self._text(node, key))
            elif key == "spark":
                declared.spark = self._texts(node, key)
            else:
                self._section(key, node)
        return declared

    def _section(self, key: str, node: Node) -> None:
        for name, line, value in self._named(node, key):
            if key == "sources":
                self._declared.sources.append(self._filled(Source(name, line), value))
            elif key == "sinks":
                self._declared.sinks.append(self._filled(Sink(name, line), value))
            else:
                self._declared.steps.append(self._step(name, line, value))

    def _step(self, name: str, line: int, node: Node) -> Step:
        """`name: SELECT …`, or `name: {sql: SELECT …}`."""
        if isinstance(node, yaml.ScalarNode):
            return Step(name, self._first_line(node), sql=node.value)
        for _, value in self._entries(node, ("sql",), f"step {name!r}"):
            return Step(name, self._first_line(value), sql=self._text(value, "sql"))
        raise self._declared.wrong(line, f"step {name!r} has no SQL")

    def _filled(self, made: Any, node: Node) -> Any:  # noqa: ANN401
        """A source or a sink with the values of the file."""
        kind = type(made).__name__.lower()
        names = [item.name for item in fields(made) if item.name not in OF_ALL]
        spelled = {written: name for written, name in RENAMED.items() if name in names}
        allowed = [*spelled, *(name for name in names if name not in spelled.values())]
        for key, value in self._entries(node, allowed, f"{kind} {made.name!r}"):
            attribute = spelled.get(key, key)
            made.lines[attribute] = value.start_mark.line + 1
            if attribute == "options":
                setattr(made, attribute, self._texts(value, key))
                made.lines |= {name: line for name, line, _ in self._named(value, key)}
            elif attribute == "key":
                setattr(made, attribute, self._list(value, key))
            else:
                setattr(made, attribute, self._text(value, key))
        return made

    def _entries(
        self, node: Node, allowed: tuple[str, ...] | list[str], who: str
    ) -> Iterator[tuple[str, Node]]:
        seen: set[str] = set()
        for key, line, value in self._named(node, who):
            if key not in allowed:
                hint = suggestion(key, allowed) or f"; it may have {', '.join(allowed)}"
                raise self._declared.wrong(line, f"{who} has no {key!r}{hint}")
            if key in seen:
                raise self._declared.wrong(line, f"{who} has {key!r} twice")
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
