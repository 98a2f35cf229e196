"""The loop hands socket events to whoever registered, and everything else to asyncio."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

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


@pytest.mark.parametrize("is_gathering", [False, True])
def test_when_much_came_whoever_is_ready_by_then_shares_the_turn(is_gathering: bool) -> None:
    with running_loop() as loop, contextlib.ExitStack() as open_sockets:
        sockets = [s for _ in range(3) for s in socket.socketpair()]
        for each in sockets:
            each.setblocking(False)
            open_sockets.enter_context(each)
        first, first_peer, second, second_peer, other, other_peer = sockets
        events: list[object] = []

        class Much(Reader):
            def ready(self, events: int) -> None:
                super().ready(events)
                loop.selector.is_gathering = is_gathering
                second_peer.send(b"second")
                other_peer.send(b"other")  # For asyncio, which is told of it once.

        loop.selector.register(first, READ, Much(first, events))
        loop.selector.register(second, READ, Reader(second, events))
        loop.add_reader(other, lambda: events.append(other.recv(100)))
        loop.selector.after_dispatch = lambda: events.append("end of turn")

        async def run() -> None:
            first_peer.send(b"first")
            await asyncio.sleep(0.01)

        loop.run_until_complete(run())
        assert events[0] == b"first"
        assert events.index("end of turn") == (2 if is_gathering else 1)
        assert events.count(b"second") == events.count(b"other") == 1
        assert not loop.selector.is_gathering
        loop.remove_reader(other)
        loop.selector.unregister(first)
        loop.selector.unregister(second)
