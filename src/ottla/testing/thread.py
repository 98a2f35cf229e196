"""A broker inside the test process, in a thread with its own event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from ottla.env.loop import DispatchLoop
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.testing.faults import FaultOrder
from ottla.testing.hosted_broker import HostedBroker, run_on

Value = TypeVar("Value")

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0


class BrokerThread:
    def __init__(self, data: str, settings: Mapping[str, str], port: int) -> None:
        self._hosted = HostedBroker(data, settings, port)
        self._loop: DispatchLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Address:
        if self._loop is None:
            self._start_thread()
        return self._run(self._hosted.start(), START_SECONDS_MAX)

    def stop(self, *, cleanly: bool) -> None:
        self._run(self._hosted.stop(cleanly=cleanly), STOP_SECONDS_MAX)

    def kill(self) -> None:
        """Close to kill -9: the files are left as they are."""
        self.stop(cleanly=False)

    def close(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(STOP_SECONDS_MAX)
            assert not thread.is_alive(), "the broker's thread ends with its loop"

    def inject(self, order: FaultOrder) -> None:
        self._run(_call(self._hosted.inject, order), STOP_SECONDS_MAX)

    def clear_faults(self) -> None:
        self._run(_call(self._hosted.clear_faults), STOP_SECONDS_MAX)

    def drop_connections(self) -> int:
        return self._run(_call(self._hosted.drop_connections), STOP_SECONDS_MAX)

    def requests(self, api_key: ApiKey) -> list[bytes]:
        return self._run(_call(self._hosted.requests, api_key), STOP_SECONDS_MAX)

    def _start_thread(self) -> None:
        self._loop = DispatchLoop()
        ready = threading.Event()
        self._thread = threading.Thread(
            target=run_on, args=(self._loop, ready.set), name="ottla-broker", daemon=True
        )
        self._thread.start()
        ready.wait(START_SECONDS_MAX)

    def _run(self, work: Coroutine[Any, Any, Value], seconds_max: float) -> Value:
        assert self._loop is not None, "the broker's thread is running"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds_max)


async def _call(function: Callable[..., Value], *args: object) -> Value:
    return function(*args)
