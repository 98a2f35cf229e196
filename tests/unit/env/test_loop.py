"""The loop hands socket events to whoever registered, and everything else to asyncio."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

from ottla.env.loop import READ, DispatchLoop


class Reader:
    """Reads what is there, and notes it."""

    def __init__(self, connected: socket.socket, events: list[object]) -> None:
        self._socket = connected
        self._events = events

    def ready(self, events: int) -> None:
        assert events & READ
        self._events.append(self._socket.recv(100))


@contextlib.contextmanager
def running_loop() -> Iterator[DispatchLoop]:
    loop = DispatchLoop()
    try:
        yield loop
    finally:
        loop.close()


def test_events_go_straight_to_their_channel_and_end_the_turn() -> None:
    with running_loop() as loop:
        here, there = socket.socketpair()
        events: list[object] = []
        loop.selector.register(here, READ, Reader(here, events))
        loop.selector.after_dispatch = lambda: events.append("end of turn")

        async def run() -> None:
            there.send(b"hello")
            await asyncio.sleep(0.01)

        loop.run_until_complete(run())
        assert events == [b"hello", "end of turn"]
        loop.selector.unregister(here)
        here.close()
        there.close()


def test_a_turn_that_had_only_asyncios_events_ends_nothing() -> None:
    with running_loop() as loop:
        ended = []
        loop.selector.after_dispatch = lambda: ended.append(True)

        async def run() -> None:
            await asyncio.sleep(0.001)
            await loop.run_in_executor(None, lambda: None)
            await loop.shutdown_default_executor()

        loop.run_until_complete(run())
        assert not ended


def test_asyncios_own_readers_still_work() -> None:
    with running_loop() as loop:
        here, there = socket.socketpair()
        here.setblocking(False)

        async def run() -> bytes:
            there.send(b"asyncio")
            return await loop.sock_recv(here, 100)

        assert loop.run_until_complete(run()) == b"asyncio"
        here.close()
        there.close()


def test_whoever_looks_knows_whether_events_are_being_handed_out() -> None:
    with running_loop() as loop:
        here, there = socket.socketpair()
        seen: list[object] = []

        class Looking(Reader):
            def ready(self, events: int) -> None:
                super().ready(events)
                seen.append(loop.selector.is_dispatching)

        loop.selector.register(here, READ, Looking(here, []))

        async def run() -> None:
            there.send(b"x")
            await asyncio.sleep(0.01)
            seen.append(loop.selector.is_dispatching)

        loop.run_until_complete(run())
        assert seen == [True, False]
        loop.selector.unregister(here)
        here.close()
        there.close()
