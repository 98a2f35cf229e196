"""Implementation of `ottla cdc`: runs a tail and shows its progress until a signal or the end."""

import asyncio
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict

from ottla.cdc.progress import Progress, Rate
from ottla.cdc.settings import TailSettings
from ottla.cdc.tail import Tail
from ottla.cli.views.terminal import bytes_text, note, plural, say, show_json
from ottla.client.cluster import Cluster

SHOWN_SECONDS = 0.5
TOLD_SECONDS = 10.0  # Interval of lines where there is no terminal.
CLEAR = "\r\x1b[K"


async def tail(cluster: Cluster, settings: TailSettings, *, as_json: bool) -> None:
    progress = Progress()
    view = View(progress, is_live=sys.stderr.isatty() and not as_json, as_json=as_json)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopped() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)  # A second signal ends it at once.
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped)
    showing = asyncio.ensure_future(view.run(cluster.clock.monotonic))
    try:
        await Tail(cluster, settings, progress, view.note).run(stop)
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        view.end()


class View:
    def __init__(self, progress: Progress, *, is_live: bool, as_json: bool) -> None:
        self._progress = progress
        self._is_live = is_live
        self._as_json = as_json
        self._rate = Rate()

    def note(self, text: str) -> None:
        """Print an event."""
        self._clear()
        if self._as_json:
            show_json({"note": text})
            sys.stdout.flush()
        else:
            note(text)

    async def run(self, now: Callable[[], int]) -> None:
        while True:
            await asyncio.sleep(SHOWN_SECONDS if self._is_live else TOLD_SECONDS)
            done = self._progress.rows + self._progress.changes
            rate = self._rate.look(now(), done)
            if self._as_json:
                show_json({**self._numbers(), "per_second": round(rate)})
                sys.stdout.flush()
            elif self._is_live:
                sys.stderr.write(CLEAR + line(self._progress, rate))
                sys.stderr.flush()
            else:
                note(line(self._progress, rate))

    def end(self) -> None:
        """Print the result."""
        self._clear()
        if self._as_json:
            show_json(self._numbers())
        else:
            say(line(self._progress, None))

    def _numbers(self) -> dict[str, object]:
        return {**asdict(self._progress), "lag_bytes": self._progress.lag_bytes}

    def _clear(self) -> None:
        if self._is_live:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


def line(progress: Progress, rate: float | None) -> str:
    """The progress line for a terminal."""
    parts = []
    if progress.rows or progress.phase == "snapshot":
        parts.append(f"{plural(progress.rows, 'row')} of the snapshot")
    if progress.phase == "stream":
        parts.append(plural(progress.changes, "change"))
        parts.append(f"{bytes_text(progress.lag_bytes)} behind")
    if rate is not None:
        parts.append(f"{rate:,.0f}/s")
    return ", ".join(parts) or progress.phase
