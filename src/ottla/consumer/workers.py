"""The threads in which handlers run, so that polling never waits for one.

Coroutine handlers run on one event loop shared by all workers.
"""

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue

from ottla.client.message import Message
from ottla.consumer.errors import Reject
from ottla.consumer.lanes import Task

Handler = Callable[[Message], Awaitable[object] | object]
GiveUp = Callable[[Message, Exception], None]  # Raises if the record must not be skipped.

log = logging.getLogger("ottla.consumer")


class Workers:
    def __init__(self, handler: Handler, count: int, *, retries: int, give_up: GiveUp) -> None:
        self.under_way = 0
        self.count = count
        self._handler = handler
        self._retries = retries
        self._give_up = give_up
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._over: SimpleQueue[Task] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        if is_async(self._handler):
            self._loop = asyncio.new_event_loop()
            _thread("ottla-consumer-loop", _run_loop, self._loop)
        for number in range(self.count):
            _thread(f"ottla-consumer-{number}", self._work)

    def stop(self) -> None:
        """Accept no more tasks. A handler that never returns ends with the process."""
        for _ in range(self.count):
            self._tasks.put(None)
        if self._loop is not None and not self.under_way:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def begin(self, task: Task) -> None:
        self.under_way += 1
        self._tasks.put(task)

    def collect(self, wait_s: float = 0.0) -> bool:
        """Wait up to `wait_s` for a finished task; False if there was none."""
        try:
            self._over.get(timeout=wait_s) if wait_s > 0 else self._over.get_nowait()
        except Empty:
            return False
        self.under_way -= 1
        return True

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.begun_at = time.monotonic()
            try:
                self._run(task)
            except BaseException as error:  # noqa: BLE001  The polling thread raises it.
                task.fatal = error
            task.over_at = time.monotonic()
            task.is_over = True
            self._over.put(task)

    def _run(self, task: Task) -> None:
        for message in task.messages:
            if task.is_cancelled:
                return
            try:
                self._handle(message)
            except Exception as error:  # noqa: BLE001  Whatever a handler raises is its failure.
                task.failures += 1
                if task.failures <= self._retries and not isinstance(error, Reject):
                    task.failure = error
                    return
                self._give_up(message, error)
            task.failures = 0
            task.done += 1

    def _handle(self, message: Message) -> None:
        result = self._handler(message)
        if inspect.iscoroutine(result):
            assert self._loop is not None, "it was seen to be async"
            asyncio.run_coroutine_threadsafe(result, self._loop).result()


def is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  Not whether, but how it is called.
    )


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _thread(name: str, target: Callable[..., object], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, name=name, daemon=True).start()
