"""The real network on loopback: what it carries, and that a turn flushes before it sends."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from ottla.env.disk import real_disk
from ottla.env.files import FileRange
from ottla.env.loop import DispatchLoop
from ottla.env.network import Address, Channel, Listening, Piece
from ottla.env.sockets import (
    GATHER_BYTES_MAX,
    GATHER_BYTES_MIN,
    RANGE_COPIED_BYTES_MAX,
    SocketChannel,
    SocketListener,
    SocketNetwork,
)
from ottla.env.workers import ThreadWorkers


class Answering:
    """Answers whatever it receives with the pieces it was given."""

    def __init__(self, channel: Channel, pieces: list[Piece]) -> None:
        self._channel, self._pieces = channel, pieces
        self._buffer = memoryview(bytearray(1 << 16))
        self.ended = asyncio.Event()

    def buffer(self) -> memoryview:
        return self._buffer

    def received(self, count: int) -> None:
        self._channel.send(self._pieces)

    def sent(self) -> None: ...

    def closed(self) -> None:
        self.ended.set()


def run(test: Callable[[SocketNetwork], Awaitable[None]]) -> None:
    loop = DispatchLoop()
    workers = ThreadWorkers()
    try:
        loop.run_until_complete(asyncio.wait_for(test(SocketNetwork(loop, workers)), 20))
    finally:
        workers.close()
        loop.close()


def ask(address: Address, size: int) -> bytes:
    with socket.create_connection(address, timeout=10) as client:
        client.sendall(b"?")
        received = bytearray()
        while len(received) < size and (data := client.recv(1 << 16)):
            received += data
        return bytes(received)


def try_to_ask(address: Address) -> bytes:
    try:
        return ask(address, 1)
    except ConnectionError:
        return b""


async def listening(network: SocketNetwork, pieces: list[Piece]) -> Listening:
    door = await network.listen("127.0.0.1", 0, lambda channel: Answering(channel, pieces))
    door.start()
    return door


@pytest.mark.parametrize("size", [1, RANGE_COPIED_BYTES_MAX, 3_000_000])
def test_buffers_and_file_ranges_arrive_in_order(tmp_path: object, size: int) -> None:
    file = real_disk().open(f"{tmp_path}/log", create=True)
    data = bytes(range(256)) * (size // 256 + 1)
    file.append([b"skipped", data])
    pieces: list[Piece] = [b"head", b"", FileRange(file, 7, size), b"tail", b""]

    async def test(network: SocketNetwork) -> None:
        door = await listening(network, pieces)
        expected = b"head" + data[:size] + b"tail"
        assert await asyncio.to_thread(ask, door.address, len(expected)) == expected
        door.close()

    run(test)


def test_the_hook_runs_before_anything_is_sent() -> None:
    events: list[str] = []

    async def test(network: SocketNetwork) -> None:
        network.before_sending = lambda: events.append("flushed")
        door = await listening(network, [b"answer"])
        assert await asyncio.to_thread(ask, door.address, 6) == b"answer"
        assert events[0] == "flushed"
        door.close()

    run(test)


def test_nobody_is_accepted_before_the_start() -> None:
    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, lambda channel: Answering(channel, [b"x"]))
        asking = asyncio.create_task(asyncio.to_thread(ask, door.address, 1))
        await asyncio.sleep(0.05)
        assert not asking.done()
        door.start()
        assert await asking == b"x"
        door.close()

    run(test)


def test_a_connection_that_the_peer_closes_is_told() -> None:
    async def test(network: SocketNetwork) -> None:
        accepted: asyncio.Queue[Answering] = asyncio.Queue()

        def accept(channel: Channel) -> Answering:
            peer = Answering(channel, [])
            accepted.put_nowait(peer)
            return peer

        door = await network.listen("127.0.0.1", 0, accept)
        door.start()
        client = await asyncio.to_thread(socket.create_connection, door.address)
        client.close()
        await (await accepted.get()).ended.wait()
        door.close()

    run(test)


def test_a_port_in_use_is_refused_by_the_system() -> None:
    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, lambda channel: Answering(channel, []))
        with pytest.raises(OSError, match="in use"):
            await network.listen("127.0.0.1", door.address.port, lambda c: Answering(c, []))
        door.close()

    run(test)


def test_who_is_refused_while_being_accepted_harms_nobody() -> None:
    accepted: list[Channel] = []

    def accept(channel: Channel) -> Answering:
        accepted.append(channel)
        peer = Answering(channel, [b"x"])
        if len(accepted) == 1:
            channel.close()
        return peer

    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, accept)
        door.start()
        assert not await asyncio.to_thread(try_to_ask, door.address)
        assert await asyncio.to_thread(ask, door.address, 1) == b"x"
        door.close()

    run(test)


def test_without_descriptors_the_listener_rests_and_then_goes_on() -> None:
    class Exhausted:
        """Stands for the listening socket of a process that may not open anything more."""

        def __init__(self, listener: socket.socket) -> None:
            self.listener = listener
            self.attempts = 0

        def fileno(self) -> int:
            return self.listener.fileno()

        def accept(self) -> tuple[socket.socket, object]:
            self.attempts += 1
            if self.attempts < 3:
                raise OSError(24, "too many open files")
            return self.listener.accept()

        def close(self) -> None:
            self.listener.close()

    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, lambda channel: Answering(channel, [b"x"]))
        assert isinstance(door, SocketListener)
        exhausted = Exhausted(door._listener)
        door._listener = exhausted  # type: ignore[assignment]
        door.start()
        assert await asyncio.to_thread(ask, door.address, 1) == b"x"
        assert exhausted.attempts < 10
        door.close()

    run(test)


@pytest.mark.parametrize(
    ("size", "looks_again"),
    [(GATHER_BYTES_MIN - 1, False), (GATHER_BYTES_MIN, True), (GATHER_BYTES_MAX + 1, False)],
)
def test_a_turn_in_which_much_came_looks_again_before_it_ends(size: int, looks_again: bool) -> None:
    """So that what came meanwhile from others is written with it."""
    events: list[object] = []
    large, small = socket.socketpair(), socket.socketpair()
    is_done = asyncio.Event()

    class Noting(Answering):
        def buffer(self) -> memoryview:
            return memoryview(bytearray(2 * GATHER_BYTES_MAX))

        def received(self, count: int) -> None:
            events.append(count)
            if count == size:
                small[1].send(b"?")
            else:
                is_done.set()

    async def test(network: SocketNetwork) -> None:
        network.before_sending = lambda: events.append("end of turn")
        for here, _ in (large, small):
            here.setblocking(False)
            SocketChannel(network, here, lambda channel: Noting(channel, []))
        large[1].sendall(bytes(size))
        await is_done.wait()
        events.append("end of turn")  # Of the one that is under way, at the latest.
        assert (events.index(1) < events.index("end of turn")) is looks_again

    run(test)
    for pair in (large, small):
        for each in pair:
            each.close()
