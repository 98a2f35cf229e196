"""Whether the brokers answer, asked once a second by a thread of its own."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Final

from ottla.client.blocking_cluster import BlockingCluster
from ottla.client.cluster import ClientSettings
from ottla.client.errors import ClientError

INTERVAL_S: Final = 1.0
ANSWER_MS_MAX: Final = 3_000


class BrokerWatch:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._ended = threading.Event()
        self._away_since: float | None = None

    @property
    def away_s(self) -> float | None:
        """Seconds since the last answer; None while the brokers answer."""
        since = self._away_since
        return None if since is None else time.monotonic() - since

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        settings = ClientSettings(connect_ms_max=ANSWER_MS_MAX, request_ms_max=ANSWER_MS_MAX)
        answered_at = time.monotonic()
        with BlockingCluster(self._bootstrap, settings) as client:
            while not self._ended.wait(INTERVAL_S):
                try:
                    client.run(client.cluster.refresh())
                except ClientError:
                    self._away_since = answered_at
                else:
                    answered_at, self._away_since = time.monotonic(), None
