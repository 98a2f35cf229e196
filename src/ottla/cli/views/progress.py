"""Progress of long work on standard error: a bar on a terminal, lines elsewhere."""

import sys
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ottla.cli.views.terminal import note

if TYPE_CHECKING:
    from rich.progress import Progress

LINE_SECONDS_MIN = 5.0  # Between two lines that report the same count.


class Bar(AbstractContextManager["Bar"]):
    """Counts up to `total`; `seen` also takes a few words for what the count means."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._told: tuple[int, str] | None = None
        self._told_at = 0.0
        self._bar: Progress | None = None

    def __enter__(self) -> "Bar":
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.add_task(self._title, total=self._total, words="")
            self._bar.start()
        return self

    def seen(self, done: int, words: str) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, words=words)
        elif self._is_news(done, words):
            note(f"{done:,} of {self._total:,} {words}")
            self._told, self._told_at = (done, words), time.monotonic()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _is_news(self, done: int, words: str) -> bool:
        if self._told is None or self._told[0] != done:
            return True
        is_due = time.monotonic() - self._told_at > LINE_SECONDS_MIN
        return self._told[1] != words and is_due


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
        console=Console(stderr=True),
    )
