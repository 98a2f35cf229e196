"""All clients of a run, each in a thread or on one loop, and what became of them."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from traceback import format_exc
from typing import Any

from tests.chaos import aiokafka_clients, confluent_clients
from tests.chaos.clients import Lives, Setting

CLASSIC, MODERN = "classic-group", "consumer-group"
GROUPS = (CLASSIC, MODERN)
END_SECONDS_MAX = 60.0


class Workload:
    """Two producers and one reader of each library, and two groups: one of each protocol."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.broken: list[str] = []  # Clients that ended by an error of this program.
        self._setting = setting
        self._seed = seed
        self._writers: list[threading.Thread] = []
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        setting, lives = self._setting, self._lives
        for number in (1, 2):
            name = f"librdkafka-writer-{number}"
            self._writers += [self._thread(confluent_clients.write, setting, lives(name))]
        name = "librdkafka-reader"
        self._readers += [self._thread(confluent_clients.read, setting, lives(name))]
        for group, protocol, number in (
            (CLASSIC, "classic", 1),
            (MODERN, "consumer", 1),
            (MODERN, "consumer", 2),
        ):
            member = lives(f"{group}-librdkafka-{number}")
            self._readers += [
                self._thread(confluent_clients.join, setting, member, group, protocol)
            ]
        self._writers += [
            self._loop(
                lambda: aiokafka_clients.write(setting, lives("aiokafka-writer-1")),
                lambda: aiokafka_clients.write(setting, lives("aiokafka-writer-2")),
            )
        ]
        self._readers += [
            self._loop(
                lambda: aiokafka_clients.read(setting, lives("aiokafka-reader")),
                lambda: aiokafka_clients.join(setting, lives(f"{CLASSIC}-aiokafka-1"), CLASSIC),
                lambda: aiokafka_clients.join(setting, lives(f"{CLASSIC}-aiokafka-2"), CLASSIC),
            )
        ]
        for thread in (*self._writers, *self._readers):
            thread.start()

    def stop_writing(self) -> None:
        self._setting.writing.set()
        self._join(self._writers)

    def stop_reading(self) -> None:
        self._setting.reading.set()
        self._join(self._readers)

    def _lives(self, name: str) -> Lives:
        return Lives(name, self._seed)

    def _thread(self, run: Callable[..., None], *arguments: object) -> threading.Thread:
        return threading.Thread(target=self._watched, args=(run, *arguments), daemon=True)

    def _loop(self, *coroutines: Callable[[], Coroutine[Any, Any, None]]) -> threading.Thread:
        async def run_all() -> None:
            await asyncio.gather(*(coroutine() for coroutine in coroutines))

        return self._thread(lambda: asyncio.run(run_all()))

    def _watched(self, run: Callable[..., None], *arguments: object) -> None:
        try:
            run(*arguments)
        except BaseException:  # noqa: BLE001  Whatever it is, the run has to tell it.
            self.broken.append(format_exc())

    def _join(self, threads: list[threading.Thread]) -> None:
        deadline = time.monotonic() + END_SECONDS_MAX
        for thread in threads:
            thread.join(max(0.1, deadline - time.monotonic()))
            if thread.is_alive():
                self.broken.append(f"a client did not end within {END_SECONDS_MAX} s")
