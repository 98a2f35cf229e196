"""Implementation of `ottla pipeline`: checks, runs and stops a pipeline.

A signal while it is checked ends the process. While it runs, the first signal stops it between
micro-batches, the second one at once.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.cli.tasks.broker_watch import BrokerWatch
from ottla.cli.tasks.jvm_output import JvmOutput
from ottla.cli.views.pipeline_view import JsonLines, Lines, Moment, View, painting
from ottla.cli.views.terminal import note, plural, say, show_json

if TYPE_CHECKING:
    from ottla.spark.pipelines.model import Declaration
    from ottla.spark.pipelines.run import Running

POLL_S = 0.5
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asked for on the command line."""

    file: Path
    master: str | None = None
    bootstrap: str | None = None
    is_once: bool = False
    is_json: bool = False
    has_trace: bool = False  # Of a query that fails.


class Interrupted(BaseException):
    """A signal while nothing runs yet. py4j would print a traceback for a KeyboardInterrupt."""


def run_pipeline(wanted: Wanted) -> int:
    """Returns the exit status."""
    with _sentences(wanted) as outcome:
        declared = _declared(wanted)
        from ottla.spark.pipelines.run import Running, prepare

        output = JvmOutput()
        with _checking(declared, wanted, output) as spark:
            plan = prepare(declared, spark, is_once=wanted.is_once)
            for sentence in plan.notes:
                note(f"ottla: {sentence}")
            asked = _Asked()
            with asked.listening():
                running = Running(declared, plan.queries)
                names = [query.name for query in plan.queries]
                ui = spark.sparkContext.uiWebUrl
                if wanted.is_json:
                    show_json(
                        {"event": "start", "pipeline": declared.name, "queries": names, "ui": ui}
                    )
                note(f"ottla: {declared.name}: running {', '.join(names)}")
                with _view(wanted, output) as view:
                    _Watch(running, asked, view, BrokerWatch(declared.bootstrap), ui).run()
    return outcome.status


def check_pipeline(wanted: Wanted, *, is_quick: bool) -> int:
    """Returns the exit status. Changes nothing."""
    with _sentences(wanted) as outcome:
        declared = _declared(wanted)
        if not is_quick:
            from ottla.spark.pipelines.run import prepare

            with _checking(declared, wanted, JvmOutput()) as spark:
                for sentence in prepare(declared, spark, is_once=False).notes:
                    say(sentence)
        sources, sinks = (
            plural(len(declared.sources), "source"),
            plural(len(declared.sinks), "sink"),
        )
        steps = plural(len(declared.steps), "step")
        say(f"{declared.name}: {sources}, {steps}, {sinks}; nothing is wrong with it.")
    return outcome.status


def _declared(wanted: Wanted) -> "Declaration":
    from ottla.spark.pipeline import load
    from ottla.spark.pipelines.model import check

    declared = load(wanted.file)
    if wanted.bootstrap is not None:
        declared.bootstrap = wanted.bootstrap
    check(declared)
    return declared


@contextlib.contextmanager
def _checking(declared: "Declaration", wanted: Wanted, output: JvmOutput) -> Iterator[Any]:
    """A session, after a look at the brokers, which takes less time than the start of a JVM."""
    from ottla.spark.pipelines.run import open_session
    from ottla.spark.pipelines.topics import find_broker

    with _interruptible():
        find_broker(declared.bootstrap)
        note(f"ottla: {declared.name}: checking ...")
        with output.captured() if sys.stderr.isatty() else contextlib.nullcontext():
            spark = open_session(declared, wanted.master)
    try:
        with _interruptible():  # Again: Spark replaces the handler of Ctrl-C at its start.
            yield spark
    except Interrupted:
        raise  # A call into the JVM is unfinished. The JVM ends with this process.
    except BaseException:
        _end(spark)
        raise
    _end(spark)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    def interrupt(_number: int, _frame: Any) -> None:  # noqa: ANN401
        raise Interrupted

    with _handled_by(interrupt):
        yield


@contextlib.contextmanager
def _handled_by(handler: Any) -> Iterator[None]:  # noqa: ANN401
    former = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, one in former.items():
            signal.signal(number, one)


@dataclass(slots=True)
class _Outcome:
    status: int = 0


@contextlib.contextmanager
def _sentences(wanted: Wanted) -> Iterator[_Outcome]:
    """Print errors as sentences, and keep the exit status."""
    outcome = _Outcome()
    try:
        yield outcome
    except ModuleNotFoundError as failure:
        outcome.status = 1
        note(f"ottla: {failure.name} is not installed: pip install 'ottla[spark]'")
    except (KeyboardInterrupt, Interrupted):
        outcome.status = INTERRUPTED
        note("ottla: interrupted; nothing was started")
    except Exception as failure:
        from ottla.client.errors import ClientError
        from ottla.spark.errors import SparkError

        if not isinstance(failure, ClientError | SparkError):
            raise
        outcome.status = 1
        for error in getattr(failure, "errors", (failure,)):
            note(f"ottla: {error}")
            if wanted.is_json:
                line = getattr(error, "line", None)
                sentence = getattr(error, "sentence", str(error))
                show_json({"event": "error", "line": line, "sentence": sentence})
        _show_trace(getattr(failure, "trace", None), wanted)


def _show_trace(trace: str | None, wanted: Wanted) -> None:
    if trace is None:
        return
    if wanted.has_trace:
        sys.stderr.write(f"{trace}\n")
    else:
        note("ottla: the trace of the failed task is shown with --trace")


class _Asked:
    """Number of stop requests by a person or a supervisor."""

    def __init__(self) -> None:
        self.times = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        with _handled_by(self._noted):
            yield

    def _noted(self, _number: int, _frame: Any) -> None:  # noqa: ANN401
        self.times += 1


@contextlib.contextmanager
def _view(wanted: Wanted, output: JvmOutput) -> Iterator[View]:
    if wanted.is_json:
        yield JsonLines()
    elif sys.stderr.isatty():
        with painting(output, is_once=wanted.is_once) as view:
            yield view
    else:
        yield Lines()


class _Watch:
    """Shows a running pipeline until it ends or is asked to stop."""

    def __init__(
        self, running: "Running", asked: _Asked, view: View, broker: BrokerWatch, ui: str | None
    ) -> None:
        self._running = running
        self._asked = asked
        self._view = view
        self._broker = broker
        self._ui = ui
        self._began = time.monotonic()

    def run(self) -> None:
        running = self._running
        try:
            with self._broker.watching():
                while running.is_active and not self._asked.times:
                    running.poll()
                    self._show()
                    time.sleep(POLL_S)
                if self._asked.times:
                    note("ottla: stopping after the micro-batches that are under way ...")
                    self._stop()
                running.poll()
        except BaseException:
            running.stop()
            raise
        finally:
            self._show(is_end=True)

    def _show(self, *, is_end: bool = False) -> None:
        elapsed_s = time.monotonic() - self._began
        queries = list(self._running.progress.values())
        moment = Moment(queries, elapsed_s, self._broker.away_s, self._ui)
        self._view.show(moment, is_end=is_end)

    def _stop(self) -> None:
        from ottla.spark.pipelines.run import STOP_S_MAX

        deadline = time.monotonic() + STOP_S_MAX
        before = self._asked.times
        while self._asked.times == before and time.monotonic() < deadline:
            if self._running.stop_idle():
                note("ottla: stopped; the next run goes on from here")
                return
            time.sleep(0.02)
        self._running.stop()
        note("ottla: a micro-batch was cut off; the next run begins it again")


def _end(spark: Any) -> None:  # noqa: ANN401
    with contextlib.suppress(Exception):  # It ends in any case.
        spark.stop()
