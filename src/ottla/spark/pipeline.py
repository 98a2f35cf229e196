"""A pipeline in Python: `Pipeline` collects declarations, without running anything.

    from ottla.spark.pipeline import Pipeline

    pipeline = Pipeline("orders", bootstrap="localhost:9092", checkpoints="checkpoints")
    pipeline.source("orders", topic="orders", schema="id long, amount double",
                    dead_letter="orders.dlq")

    @pipeline.step
    def large(orders):  # A parameter is the frame of that name.
        return orders.where("amount > 100")

    pipeline.sink("lake", "large", delta="lake/large")

`ottla pipeline run FILE` finds the one `Pipeline` of the file.
"""

import inspect
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ottla.spark.pipelines.model import Declaration, PipelineError, Sink, Source, Step
from ottla.spark.pipelines.yaml import read_yaml

Function = TypeVar("Function", bound=Callable[..., Any])


class Pipeline:
    def __init__(
        self,
        name: str = "pipeline",
        *,
        bootstrap: str = "localhost:9092",
        checkpoints: str = "checkpoints",
        master: str | None = None,
        trigger: str | None = None,
        spark: dict[str, Any] | None = None,
    ) -> None:
        self.declared = Declaration(
            _caller()[0],
            name,
            bootstrap,
            checkpoints,
            master,
            trigger,
            {key: _text(value) for key, value in (spark or {}).items()},
        )

    def source(self, name: str, **more: Any) -> None:  # noqa: ANN401  The fields of Source.
        """A topic to read: `topic=`, `schema=`, `dead_letter=`, …; or files: `path=`."""
        self.declared.sources.append(self._made(Source, name, more))

    def step(self, function: Function) -> Function:
        """Decorator for a function of frames that returns a frame; its parameters name its
        inputs.
        """
        inputs = tuple(inspect.signature(function).parameters)
        line = function.__code__.co_firstlineno
        step = Step(function.__name__, line, function=function, inputs=inputs)
        self.declared.steps.append(step)
        return function

    def sql(self, name: str, text: str) -> None:
        """A query over the sources and the steps before it."""
        self.declared.steps.append(Step(name, _caller()[1], sql=text))

    def sink(self, name: str, source: str, **more: Any) -> None:  # noqa: ANN401  The fields of Sink.
        """Target of a frame: `topic=`, `delta=` or `parquet=`."""
        key = more.get("key", ())
        more["key"] = [key] if isinstance(key, str) else list(key)
        self.declared.sinks.append(self._made(Sink, name, {"source": source, **more}))

    def _made(self, kind: type, name: str, more: dict[str, Any]) -> Any:  # noqa: ANN401
        """The declaration keeps an error: `check` raises all of them."""
        line = _caller()[1]
        options = more.pop("options", {})
        try:
            made = kind(name=name, line=line, **more)
        except TypeError as failure:
            wrong = str(failure).partition("() ")[2]
            sentence = f"{kind.__name__.lower()} {name!r} {wrong}"
            self.declared.errors.append(self.declared.wrong(line, sentence))
            return kind(name=name, line=line, is_broken=True)
        made.options = {key: _text(value) for key, value in options.items()}
        return made


def load(path: str | Path) -> Declaration:
    """Read the declaration of a file; PipelineError if that cannot be done at all.

    Other errors are kept in the declaration, and raised by `check`.
    """
    path = Path(path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as failure:
        why = getattr(failure, "strerror", None) or "it is not text"
        raise PipelineError(str(path), 1, f"cannot be read: {str(why).lower()}") from failure
    if path.suffix in (".yaml", ".yml"):
        return read_yaml(str(path), text)
    if path.suffix != ".py":
        raise PipelineError(str(path), 1, "a pipeline is a file that ends with .yaml or .py")
    return _run(path)


def _run(path: Path) -> Declaration:
    try:
        # Under a name that no worker can import, so that functions are pickled by value.
        names = runpy.run_path(str(path), run_name="__ottla_pipeline__")
    except PipelineError:
        raise
    except SyntaxError as failure:
        raise PipelineError(str(path), failure.lineno or 1, f"{failure.msg}") from failure
    except Exception as failure:
        frames = traceback.extract_tb(failure.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        sentence = f"{type(failure).__name__}: {failure}"
        raise PipelineError(str(path), (lines or [1])[-1] or 1, sentence) from failure
    found = [value for value in names.values() if isinstance(value, Pipeline)]
    if len({id(item) for item in found}) != 1:
        raise PipelineError(str(path), 1, f"there must be one Pipeline, not {len(found)}")
    return found[0].declared


def _caller() -> tuple[str, int]:
    """The file and line outside of this module that called it."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__: Sequence[str] = ("Pipeline", "load")
