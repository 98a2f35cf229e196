"""A running pipeline: a table on a terminal, lines in a file, JSON for scripts."""

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ottla.cli.views.terminal import note, plural, printable, show_json

if TYPE_CHECKING:
    from ottla.cli.tasks.jvm_output import JvmOutput
    from ottla.spark.pipelines.progress import QueryProgress

LINE_S = 5.0
AWAY_S_MIN = 2.0  # A broker that restarts at once is not worth a line.
BAR_CHARACTERS = 24


@dataclass(frozen=True, slots=True)
class Moment:
    """What is shown of a pipeline at one time."""

    queries: "list[QueryProgress]"
    elapsed_s: float
    away_s: float | None = None  # How long no broker has answered.
    ui: str | None = None  # Address of Spark's own pages.

    @property
    def rows(self) -> int:
        return sum(query.rows for query in self.queries)

    @property
    def is_away(self) -> bool:
        return self.away_s is not None and self.away_s >= AWAY_S_MIN


class View(Protocol):
    def show(self, moment: Moment, *, is_end: bool) -> None: ...


def clock(seconds: float) -> str:
    """`0:01:05`."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def described(query: "QueryProgress") -> str:
    lag = "unknown" if query.lag is None else f"{query.lag:,}"
    return (
        f"{query.name}: {plural(query.rows, 'row')} in {query.batches:,} batches,"
        f" {query.rows_per_second:,.0f} rows/s, lag {lag}, last batch {query.batch_ms:,} ms"
    )


def away(seconds: float) -> str:
    return f"no broker has answered for {seconds:.0f} s; the queries wait"


class Lines:
    """For a file: a line for each query with news, periodically and at the end."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int, float]] = {}
        self._is_away = False

    def show(self, moment: Moment, *, is_end: bool) -> None:
        if moment.is_away != self._is_away:
            self._is_away = moment.is_away
            seconds = moment.away_s or 0.0
            note(f"ottla: {away(seconds) if self._is_away else 'the broker answers again'}")
        now = time.monotonic()
        for query in moment.queries:
            rows, at = self._shown.get(query.name, (-1, 0.0))
            if is_end or (query.rows != rows and now - at >= LINE_S):
                self._shown[query.name] = (query.rows, now)
                note(f"ottla: {described(query)}")
        if is_end:
            note(f"ottla: {plural(moment.rows, 'row')} in all, in {clock(moment.elapsed_s)}")


class JsonLines:
    """For scripts: an object per line on standard output, for each query with news."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int, int | None]] = {}
        self._is_away = False

    def show(self, moment: Moment, *, is_end: bool) -> None:
        elapsed_s = round(moment.elapsed_s, 1)
        if moment.is_away != self._is_away:
            self._is_away = moment.is_away
            event = "broker_away" if self._is_away else "broker_back"
            show_json({"event": event, "seconds": elapsed_s})
        for query in moment.queries:
            news = (query.batches, query.lag)
            if is_end or self._shown.get(query.name) != news:
                self._shown[query.name] = news
                show_json({"event": "progress", "seconds": elapsed_s, **query.as_json()})
        if is_end:
            show_json({"event": "end", "seconds": elapsed_s, "rows": moment.rows})
        sys.stdout.flush()


class Painting:
    """For a terminal: a table that is repainted."""

    def __init__(self, live: Any, *, is_once: bool) -> None:  # noqa: ANN401  Of rich.
        self._live = live
        self._is_once = is_once

    def show(self, moment: Moment, *, is_end: bool) -> None:
        self._live.update(painted(moment, is_once=self._is_once), refresh=is_end)


@contextlib.contextmanager
def painting(output: "JvmOutput", *, is_once: bool) -> Iterator[Painting]:
    """Lines of the JVM appear above the table."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=4) as live:
        output.write = lambda line: console.print(Text(printable(line)))
        try:
            yield Painting(live, is_once=is_once)
        finally:
            output.write = output.write_plainly


def painted(moment: Moment, *, is_once: bool) -> Any:  # noqa: ANN401  Of rich.
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("query")
    for column in ("batches", "rows", "rows/s", "lag", "batch ms"):
        table.add_column(column, justify="right")
    if is_once:
        table.add_column("done")
    for query in moment.queries:
        cells = [
            printable(query.name),
            f"{query.batches:,}",
            f"{query.rows:,}",
            f"{query.rows_per_second:,.0f}",
            "" if query.lag is None else f"{query.lag:,}",
            f"{query.batch_ms:,}",
        ]
        table.add_row(*cells, *([bar(query.fraction)] if is_once else []))
    foot = f"{clock(moment.elapsed_s)}, {plural(moment.rows, 'row')} in all"
    lines = [Text(f"{foot}; Spark's pages: {moment.ui}" if moment.ui else foot, style="dim")]
    if moment.is_away:
        lines.append(Text(away(moment.away_s or 0.0), style="bold red"))
    return Group(table, *lines)


def bar(fraction: float | None) -> str:
    if fraction is None:
        return ""
    full = int(fraction * BAR_CHARACTERS)
    return f"{'█' * full}{'░' * (BAR_CHARACTERS - full)} {fraction:4.0%}"
