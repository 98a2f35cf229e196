"""Channels over real sockets: what they carry, and that a turn flushes before it sends."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla.env.channels import (
    GATHER_BYTES_MAX,
    GATHER_BYTES_MIN,
    RANGE_COPIED_BYTES_MAX,
    READ_AHEAD_BYTES,
    SocketChannel,
    SocketListener,
)
from ottla.env.descriptors import RESERVE
from ottla.env.disk import real_disk
from ottla.env.files import FileRange
from ottla.env.loop import DispatchLoop
from ottla.env.network import Address, Channel, Listening, Piece
from ottla.env.sockets import SocketNetwork
from ottla.env.workers import ThreadWorkers
from ottla.model.errors import Damaged


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


def test_without_descriptors_the_listener_rests_and_then_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lent: list[None] = []
    monkeypatch.setattr(RESERVE, "lend", lambda: lent.append(None))

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
        assert len(lent) == 2  # While it rests, a few are free for imports and resolvers.
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


@pytest.mark.parametrize("size", [RANGE_COPIED_BYTES_MAX, 3 * RANGE_COPIED_BYTES_MAX])
@pytest.mark.parametrize("rewritten", [b"", b"n" * 4 * RANGE_COPIED_BYTES_MAX])
def test_range_of_a_file_truncated_before_it_was_sent_closes_the_connection(
    tmp_path: object, size: int, rewritten: bytes
) -> None:
    """A deposed leader has queued batches that it truncates; a newer leader's may follow there."""
    file = real_disk().open(f"{tmp_path}/log", create=True)
    file.append([b"o" * size])

    async def test(network: SocketNetwork) -> None:
        door = await listening(network, [b"head", FileRange(file, 0, size), b"tail"])

        def truncate() -> None:
            network.before_sending = lambda: None
            file.truncate(size // 3)
            file.append([rewritten])

        network.before_sending = truncate
        assert b"n" not in await asyncio.to_thread(ask, door.address, size)
        network.before_sending = lambda: None
        assert len(await asyncio.to_thread(ask, door.address, 4)) >= 4  # The loop goes on.
        door.close()

    run(test)


class Owner:
    """Hears of what could not be read."""

    def __init__(self) -> None:
        self.heard: list[OSError | Damaged] = []

    def unreadable(self, error: OSError | Damaged) -> None:
        self.heard.append(error)


class Broken:
    """A file whose disk gives nothing back."""

    path, truncations, size = "/gone", 0, 3 * RANGE_COPIED_BYTES_MAX

    def read(self, _position: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "the disk is gone")


@pytest.mark.parametrize("size", [RANGE_COPIED_BYTES_MAX, 3 * RANGE_COPIED_BYTES_MAX])
def test_the_owner_of_a_range_hears_that_its_file_is_shorter_than_it_was(
    tmp_path: object, size: int
) -> None:
    """Somebody cut it by hand: nobody else would ever find out."""
    file = real_disk().open(f"{tmp_path}/log", create=True)
    file.append([b"o" * size])
    real_disk().open(f"{tmp_path}/log").truncate(size // 2)
    piece, owner = FileRange(file, 0, size), Owner()
    piece.owner = owner

    async def test(network: SocketNetwork) -> None:
        door = await listening(network, [b"head", piece, b"tail"])
        got = await asyncio.to_thread(ask, door.address, size + 8)
        assert len(got) <= 4 + size // 2
        door.close()

    run(test)
    (damage,) = owner.heard
    assert isinstance(damage, Damaged)
    assert (damage.path, damage.position) == (f"{tmp_path}/log", size // 2)


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("size", [RANGE_COPIED_BYTES_MAX, 3 * RANGE_COPIED_BYTES_MAX])
def test_a_range_that_cannot_be_read_closes_the_connection_and_its_owner_hears(
    monkeypatch: pytest.MonkeyPatch, size: int, is_cached: bool
) -> None:
    """Else its client would wait for ever: nothing more is sent while a worker reads."""
    piece, owner = FileRange(Broken(), 0, size), Owner()  # type: ignore[arg-type]
    piece.owner = owner

    async def test(network: SocketNetwork) -> None:
        monkeypatch.setattr(network, "is_cached", lambda *_: is_cached)
        monkeypatch.setattr(network, "send_file", lambda _to, file, *at: file.read(*at))
        door = await listening(network, [b"head", piece])
        asked = asyncio.to_thread(ask, door.address, 4 + size)
        assert await asyncio.wait_for(asked, 5) == b"head"
        door.close()

    run(test)
    assert [error.errno for error in owner.heard if isinstance(error, OSError)] == [errno.EIO]


def test_the_owner_of_a_range_hears_nothing_of_a_client_that_left(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 3 * RANGE_COPIED_BYTES_MAX
    file = real_disk().open(f"{tmp_path}/log", create=True)
    file.append([b"o" * size])
    piece, truncated, owner = FileRange(file, 0, size), FileRange(file, 0, size), Owner()
    piece.owner = truncated.owner = owner
    truncated.truncations -= 1  # Its log was cut since: that is no damage.

    def gone(*_: object) -> int:
        raise ConnectionResetError(errno.ECONNRESET, "it left")

    async def test(network: SocketNetwork) -> None:
        monkeypatch.setattr(network, "send_file", gone)
        for pieces in ([b"head", piece], [b"head", truncated]):
            door = await listening(network, pieces)  # type: ignore[arg-type]
            assert await asyncio.to_thread(ask, door.address, size) == b"head"
            door.close()

    run(test)
    assert not owner.heard


def test_every_part_of_a_range_that_is_not_cached_is_read_by_a_worker(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 4 * READ_AHEAD_BYTES
    file = real_disk().open(f"{tmp_path}/log", create=True)
    file.append([bytes(size)])
    read: list[int] = []

    async def test(network: SocketNetwork) -> None:
        monkeypatch.setattr(network, "is_cached", lambda *_: False)
        read_ahead = network.read_ahead

        def noting(channel: SocketChannel, piece: FileRange) -> None:
            read.append(piece.position)
            read_ahead(channel, piece)

        monkeypatch.setattr(network, "read_ahead", noting)
        door = await listening(network, [FileRange(file, 0, size)])
        assert len(await asyncio.to_thread(ask, door.address, size)) == size
        door.close()

    run(test)
    assert len(read) >= 4


def test_what_a_peer_stages_when_its_answers_have_left_is_flushed_in_the_same_turn() -> None:
    """A muted peer serves more then; no other event may come that would end a turn."""
    events: list[str] = []

    class Staging(Answering):
        def sent(self) -> None:
            events.append("staged")

    async def test(network: SocketNetwork) -> None:
        def accept(channel: Channel) -> Answering:
            return Staging(channel, [b"answer"])

        network.before_sending = lambda: events.append("flushed")
        door = await network.listen("127.0.0.1", 0, accept)
        door.start()
        reader, writer = await asyncio.open_connection(*door.address)
        writer.write(b"?")
        assert await reader.readexactly(6) == b"answer"
        await asyncio.sleep(0.05)
        assert events.index("staged") < len(events) - 1
        assert events[-1] == "flushed"
        writer.close()
        await writer.wait_closed()
        door.close()

    run(test)


class Failing(Answering):
    """Raises in one of its methods."""

    def __init__(self, channel: Channel, method: str, error: Exception) -> None:
        super().__init__(channel, [b"answer"])
        self._method, self._error = method, error

    def buffer(self) -> memoryview:
        return self._fail("buffer") or super().buffer()

    def received(self, count: int) -> None:
        super().received(count)
        self._fail("received")

    def sent(self) -> None:
        self._fail("sent")

    def closed(self) -> None:
        super().closed()
        self._fail("closed")

    def _fail(self, method: str) -> None:
        if method == self._method:
            raise self._error


@pytest.mark.parametrize("method", ["accept", "buffer", "received", "sent", "closed"])
def test_exception_of_a_peer_closes_its_connection_and_disturbs_no_other(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    peers: list[Failing] = []

    def accept(channel: Channel) -> Failing:
        if method == "accept" and len(peers) == 1:
            peers.append(peers[0])
            raise ValueError("not foreseen")
        peers.append(
            Failing(channel, method if len(peers) == 1 else "", ValueError("not foreseen"))
        )
        return peers[-1]

    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, accept)
        door.start()
        with await asyncio.to_thread(socket.create_connection, door.address, 10) as good:
            await asyncio.to_thread(try_to_ask, door.address)
            for _ in range(3):
                await asyncio.to_thread(good.sendall, b"?")
                assert await asyncio.to_thread(good.recv, 6) == b"answer"
        if method != "accept":
            await peers[1].ended.wait()
        assert network.peer_failures == 1
        assert caplog.text.count("not foreseen") >= 1
        door.close()

    run(test)


@contextmanager
def looping() -> Iterator[tuple[DispatchLoop, SocketNetwork]]:
    loop, workers = DispatchLoop(), ThreadWorkers()
    try:
        yield loop, SocketNetwork(loop, workers)
    finally:
        workers.close()
        loop.close()


@pytest.mark.parametrize("method", ["buffer", "received", "sent", "closed"])
def test_failed_assert_of_a_peer_ends_the_loop(method: str) -> None:
    here, there = socket.socketpair()
    here.setblocking(False)
    with looping() as (loop, network), there:
        SocketChannel(network, here, lambda c: Failing(c, method, AssertionError("cannot be")))
        there.send(b"?")
        if method == "closed":
            there.close()
        loop.call_later(10, loop.stop)
        with pytest.raises(AssertionError, match="cannot be"):
            loop.run_forever()
    assert here.fileno() < 0


def test_exception_of_the_hook_ends_the_loop_outside_of_a_poll_too() -> None:
    def fails() -> None:
        raise ValueError("while flushing")

    with looping() as (loop, network):
        network.before_sending = fails
        loop.call_soon(network.end_turn_soon)
        loop.call_later(10, loop.stop)
        with pytest.raises(ValueError, match="while flushing"):
            loop.run_forever()


def test_exception_of_a_peer_does_not_reach_whoever_closes_its_channel(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A housekeeper closes idle connections: the end of one must not keep it from the next."""
    here, there = socket.socketpair()
    here.setblocking(False)
    error = ValueError("not foreseen")
    with looping() as (_, network), there:
        channel = SocketChannel(network, here, lambda c: Failing(c, "closed", error))
        channel.close()
        assert network.peer_failures == 1
    assert "not foreseen" in caplog.text
