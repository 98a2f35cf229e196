"""The loop hands socket events to whoever registered, and everything else to asyncio."""

import asyncio
import contextlib
import selectors
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ottla.env.loop import AGAIN, READ, SERVE_SECONDS, Dispatching, DispatchLoop, Ready

# ruff: noqa: ANN401  A selector's data is of any type.


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


class Polled(selectors.BaseSelector):
    """Reports as ready whatever the test says, in that order."""

    ready: list[Ready]

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        raise NotImplementedError

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        raise NotImplementedError

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        raise NotImplementedError

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.timeout = timeout
        ready, self.ready = self.ready, []
        return [(selectors.SelectorKey(0, 0, READ, each), READ) for each in ready]


class Turns(Dispatching, Polled):
    """Its clock stands still but for what is charged."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.clock = lambda: self.now
        self.calls: list[str] = []

    def turn(self, *ready: Ready) -> list[str]:
        """Who was served in one turn."""
        self.ready = list(ready)
        self.calls = []
        began = self.now
        self.select(None)
        assert self.now - began < SERVE_SECONDS + Busy.SECONDS
        return self.calls


class Busy:
    """Takes two fifths of a turn for each call, and wants to be called again so often."""

    SECONDS = SERVE_SECONDS / 2.5

    def __init__(self, turns: Turns, name: str, again: int = 0) -> None:
        self._turns, self._name, self._again = turns, name, again

    def ready(self, events: int) -> None:
        self._turns.calls.append(self._name + "+" * bool(events & AGAIN))
        self._turns.now += self.SECONDS
        if self._again:
            self._again -= 1
            self._turns.serve_again(self)


def test_events_that_a_turn_has_no_time_for_come_first_in_the_next() -> None:
    turns = Turns()
    a, b, c, d, e, f = (Busy(turns, name) for name in "abcdef")
    assert turns.turn(a, b, c, d, e) == ["a", "b", "c"]
    assert turns.turn(f, e) == ["d", "e", "f"]
    assert turns.timeout == 0, "nothing is waited for while somebody waits"
    assert turns.turn() == []
    assert turns.timeout is None


def test_who_asks_to_be_called_again_is_served_behind_new_events_and_round_robin() -> None:
    turns = Turns()
    a, b = Busy(turns, "a", again=2), Busy(turns, "b", again=2)
    new = Busy(turns, "new")
    assert turns.turn(a, b) == ["a", "b"]
    assert turns.turn(new) == ["a+", "new", "b+"]
    assert turns.turn() == ["a+", "b+"]
    assert turns.turn() == []


def test_new_events_do_not_starve_who_asks_to_be_called_again() -> None:
    turns = Turns()
    greedy = [Busy(turns, name, again=100) for name in "ab"]
    turns.turn(*greedy)
    served = [turns.turn(*[Busy(turns, "new") for _ in range(10)]) for _ in range(4)]
    assert [calls[0] for calls in served] == ["a+", "b+", "a+", "b+"]
    assert all(calls.count("new") == 2 for calls in served)


def test_timers_and_tasks_run_between_the_turns_of_those_who_wait() -> None:
    with running_loop() as loop:
        calls: list[str] = []

        class Greedy:
            def ready(self, _: int) -> None:
                calls.append("greedy")
                loop.selector.serve_again(self)

        async def run() -> None:
            loop.selector.serve_again(Greedy())
            for _ in range(3):
                await asyncio.sleep(0)
                calls.append("task")

        loop.run_until_complete(run())
        assert calls[:5] == ["greedy", "task", "greedy", "task", "greedy"]
