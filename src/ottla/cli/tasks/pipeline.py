"""Implementation of `ottla pipeline`: shows a running pipeline, and stops it.

On a terminal a table is refreshed; elsewhere a line is written for a query with news, every few
seconds. The first signal stops it between micro-batches, the second one at once.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.cli.views.terminal import note, plural, printable, say

if TYPE_CHECKING:
    from ottla.spark.pipelines.model import Declaration
    from ottla.spark.pipelines.progress import QueryProgress
    from ottla.spark.pipelines.run import Running

POLL_S = 0.5
LINE_S = 5.0
BAR_CHARACTERS = 24


def run_pipeline(
    file: Path, master: str | None, *, is_once: bool, bootstrap: str | None = None
) -> int:
    """Returns the exit status."""
    with _sentences() as failures:
        declared = _declared(file, bootstrap)
        from ottla.spark.pipelines.run import Running, open_session, prepare

        note(f"ottla: {declared.name}: checking ...")
        spark = open_session(declared, master)
        try:
            planned = prepare(declared, spark, is_once=is_once)
            asked = _Asked()
            with asked.listening():
                running = Running(declared, planned)
                note(f"ottla: {declared.name}: running {', '.join(q.name for q in planned)}")
                _watch(running, asked, is_once=is_once)
        finally:
            _end(spark)
    return 1 if failures else 0


def check_pipeline(
    file: Path, master: str | None, *, is_quick: bool, bootstrap: str | None = None
) -> int:
    with _sentences() as failures:
        declared = _declared(file, bootstrap)
        if not is_quick:
            from ottla.spark.pipelines.run import open_session, prepare

            spark = open_session(declared, master)
            try:
                prepare(declared, spark, is_once=False)
            finally:
                _end(spark)
        sources, sinks = (
            plural(len(declared.sources), "source"),
            plural(len(declared.sinks), "sink"),
        )
        steps = plural(len(declared.steps), "step")
        say(f"{declared.name}: {sources}, {steps}, {sinks}; nothing is wrong with it.")
    return 1 if failures else 0


def _declared(file: Path, bootstrap: str | None) -> "Declaration":
    from ottla.spark.pipeline import load
    from ottla.spark.pipelines.model import check

    declared = load(file)
    if bootstrap is not None:
        declared.bootstrap = bootstrap
    check(declared)
    return declared


@contextlib.contextmanager
def _sentences() -> Iterator[list[str]]:
    """Print errors as sentences, and record that there was one."""
    failures: list[str] = []
    try:
        from ottla.client.errors import ClientError
        from ottla.spark.errors import SparkError
    except ModuleNotFoundError as failure:
        failures.append(str(failure))
        note(f"ottla: {failure.name} is not installed: pip install 'ottla[spark]'")
        yield failures
        return
    try:
        yield failures
    except (ClientError, SparkError) as failure:
        failures.append(str(failure))
        note(f"ottla: {failure}")
    except ModuleNotFoundError as failure:
        failures.append(str(failure))
        note(f"ottla: {failure.name} is not installed: pip install 'ottla[spark]'")
    except KeyboardInterrupt:
        failures.append("interrupted")


class _Asked:
    """Number of stop requests by a person or a supervisor."""

    def __init__(self) -> None:
        self.times = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Installed late: Spark replaces the handler of Ctrl-C at its start."""
        former = {
            number: signal.signal(number, self._noted) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _noted(self, _number: int, _frame: Any) -> None:  # noqa: ANN401
        self.times += 1


def _watch(running: "Running", asked: _Asked, *, is_once: bool) -> None:
    show = _painter(is_once) if sys.stderr.isatty() else _liner()
    try:
        while running.is_active and not asked.times:
            running.poll()
            show(running.progress, False)
            time.sleep(POLL_S)
        if asked.times:
            note("ottla: stopping after the micro-batches that are under way ...")
            _stop(running, asked)
        running.poll()
    except BaseException:
        running.stop()
        raise
    finally:
        show(running.progress, True)


def _stop(running: "Running", asked: _Asked) -> None:
    from ottla.spark.pipelines.run import STOP_S_MAX

    deadline = time.monotonic() + STOP_S_MAX
    before = asked.times
    while asked.times == before and time.monotonic() < deadline:
        if running.stop_idle():
            note("ottla: stopped; the next run goes on from here")
            return
        time.sleep(0.02)
    running.stop()
    note("ottla: a micro-batch was cut off; the next run begins it again")


Show = Callable[["dict[str, QueryProgress]", bool], None]


def _liner() -> Show:
    """Lines for a file: for each query with news, periodically and at the end."""
    shown: dict[str, tuple[int, float]] = {}

    def show(progress: "dict[str, QueryProgress]", is_end: bool) -> None:
        now = time.monotonic()
        for query in progress.values():
            rows, at = shown.get(query.name, (-1, 0.0))
            if is_end or (query.rows != rows and now - at >= LINE_S):
                shown[query.name] = (query.rows, now)
                note(f"ottla: {described(query)}")

    return show


def described(query: "QueryProgress") -> str:
    lag = "unknown" if query.lag is None else f"{query.lag:,}"
    return (
        f"{query.name}: {plural(query.rows, 'row')} in {query.batches:,} batches,"
        f" {query.rows_per_second:,.0f} rows/s, lag {lag}, last batch {query.batch_ms:,} ms"
    )


def _painter(is_once: bool) -> Show:
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True), refresh_per_second=4, transient=False)
    live.start()

    def show(progress: "dict[str, QueryProgress]", is_end: bool) -> None:
        live.update(_table(progress, is_once))
        if is_end:
            live.stop()

    return show


def _table(progress: "dict[str, QueryProgress]", is_once: bool) -> Any:  # noqa: ANN401
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("query")
    for column in ("batches", "rows", "rows/s", "lag", "batch ms"):
        table.add_column(column, justify="right")
    if is_once:
        table.add_column("done")
    for query in progress.values():
        cells = [
            printable(query.name),
            f"{query.batches:,}",
            f"{query.rows:,}",
            f"{query.rows_per_second:,.0f}",
            "" if query.lag is None else f"{query.lag:,}",
            f"{query.batch_ms:,}",
        ]
        table.add_row(*cells, *([bar(query.fraction)] if is_once else []))
    return table


def bar(fraction: float | None) -> str:
    if fraction is None:
        return ""
    full = int(fraction * BAR_CHARACTERS)
    return f"{'█' * full}{'░' * (BAR_CHARACTERS - full)} {fraction:4.0%}"


def _end(spark: Any) -> None:  # noqa: ANN401
    with contextlib.suppress(Exception):  # It ends in any case.
        spark.stop()
