"""The simulated network: streams in order and whole, until something breaks them."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from ottla.env.files import FileRange
from ottla.env.network import Channel
from ottla.simulation.loop import MILLISECOND, VirtualLoop
from ottla.simulation.network import SimulatedNetwork
from ottla.simulation.process import Process, task_factory
from ottla.simulation.trace import Trace


class Recorder:
    """A peer that keeps what it gets."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.data = bytearray()
        self.times_sent = 0
        self.is_closed = False
        self._buffer = bytearray(4096)
        self.on_data: Callable[[Recorder], None] = lambda _: None

    def buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        self.data += self._buffer[:count]
        self.on_data(self)

    def sent(self) -> None:
        self.times_sent += 1

    def closed(self) -> None:
        self.is_closed = True


class OpenFile:
    def __init__(self, data: bytes) -> None:
        self.path = "file"
        self.size = len(data)
        self._data = data

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


World = Callable[[SimulatedNetwork], Awaitable[None]]


def run(world: World, seed: int = 1) -> str:
    loop = VirtualLoop()
    loop.set_task_factory(task_factory)
    trace = Trace(lambda: loop.now_ns)
    try:
        loop.run_until_complete(world(SimulatedNetwork(loop, Random(seed), trace)))
    finally:
        loop.close()
    return trace.digest()


async def pair(network: SimulatedNetwork) -> tuple[Recorder, Recorder]:
    """Both peers of a connection: the client's and the server's."""
    accepted: list[Recorder] = []
    connected: list[Recorder] = []

    def accept(channel: Channel) -> Recorder:
        accepted.append(Recorder(channel))
        return accepted[0]

    def begin(channel: Channel) -> Recorder:
        connected.append(Recorder(channel))
        return connected[0]

    (await network.host("server").listen("", 9092, accept)).start()
    await network.host("client").connect("server", 9092, begin)
    return connected[0], accepted[0]


def test_bytes_arrive_in_order_and_once() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        expected = b"".join(number.to_bytes(4, "big") for number in range(100_000))
        for start in range(0, len(expected), 7_777):
            client.channel.send([expected[start : start + 7_777]])
            await asyncio.sleep(0.0001)
        await asyncio.sleep(1)
        assert server.data == expected
        assert client.times_sent > 0
        assert client.channel.unsent == 0

    run(world)


def test_a_file_is_read_only_when_it_is_sent() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        content = bytes(range(256)) * 4096
        client.channel.send([b"head", FileRange(OpenFile(content), 100, 1_000_000), b"tail"])
        await asyncio.sleep(1)
        assert server.data == b"head" + content[100:1_000_100] + b"tail"

    run(world)


def test_a_file_that_is_too_short_closes_the_connection() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        client.channel.send([FileRange(OpenFile(b"short"), 0, 100)])
        await asyncio.sleep(1)
        assert client.is_closed
        assert server.is_closed

    run(world)


def test_a_reader_that_pauses_holds_up_the_sender() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        server.channel.pause_reading()
        client.channel.send([bytes(10 << 20)])
        await asyncio.sleep(1)
        assert not server.data
        assert client.channel.unsent == 1
        server.channel.resume_reading()
        await asyncio.sleep(1)
        assert len(server.data) == 10 << 20
        assert client.channel.unsent == 0

    run(world)


def test_what_was_sent_before_a_close_still_arrives() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        client.channel.send([b"farewell"])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        client.channel.close()
        assert client.is_closed
        assert not server.is_closed
        await asyncio.sleep(1)
        assert server.data == b"farewell"
        assert server.is_closed

    run(world)


def test_a_reset_ends_both_sides_in_the_middle() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        server.on_data = lambda peer: network.reset_some("server", 1.0) and None
        client.channel.send([bytes(200_000)])
        await asyncio.sleep(1)
        assert client.is_closed
        assert server.is_closed
        assert 0 < len(server.data) < 200_000
        assert network.channels == []

    run(world)


def test_a_clogged_host_hears_everything_later() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        network.clog("server", 500 * MILLISECOND)
        client.channel.send([b"hello"])
        await asyncio.sleep(0.4)
        assert not server.data
        await asyncio.sleep(0.4)
        assert server.data == b"hello"

    run(world)


def test_nobody_listens_means_refused() -> None:
    async def world(network: SimulatedNetwork) -> None:
        with pytest.raises(ConnectionRefusedError):
            await network.host("client").connect("server", 9092, Recorder)
        listening = await network.host("server").listen("127.0.0.1", 0, Recorder)
        listening.start()
        await network.host("client").connect("server", listening.address.port, Recorder)
        with pytest.raises(OSError, match="in use"):
            await network.host("server").listen("", listening.address.port, Recorder)
        listening.close()
        with pytest.raises(ConnectionRefusedError):
            await network.host("client").connect("server", listening.address.port, Recorder)

    run(world)


def test_those_who_come_before_the_door_opens_are_served_when_it_does() -> None:
    async def world(network: SimulatedNetwork) -> None:
        accepted: list[Recorder] = []

        def accept(channel: Channel) -> Recorder:
            accepted.append(Recorder(channel))
            return accepted[-1]

        listening = await network.host("server").listen("", 9092, accept)
        channel = await network.host("client").connect("server", 9092, Recorder)
        channel.send([b"early"])
        await asyncio.sleep(1)
        assert not accepted
        listening.start()
        await asyncio.sleep(1)
        assert accepted[0].data == b"early"

    run(world)


def test_the_hook_comes_before_anything_leaves() -> None:
    order = []

    async def world(network: SimulatedNetwork) -> None:
        server_host = network.host("server")
        client_host = network.host("client")
        server_host.before_sending = lambda: order.append("flush")

        def accept(channel: Channel) -> Recorder:
            peer = Recorder(channel)
            peer.on_data = lambda peer: channel.send([b"answer"])
            return peer

        (await server_host.listen("", 9092, accept)).start()
        clients: list[Recorder] = []

        def begin(channel: Channel) -> Recorder:
            clients.append(Recorder(channel))
            clients[0].on_data = lambda _: order.append("answer")
            return clients[0]

        channel = await client_host.connect("server", 9092, begin)
        channel.send([b"?"])
        await asyncio.sleep(1)

    run(world)
    assert order[0] == "flush"
    assert order[-1] == "answer"


def test_a_killed_process_leaves_its_peers_an_end() -> None:
    async def world(network: SimulatedNetwork) -> None:
        peers: list[Recorder] = []

        def accept(channel: Channel) -> Recorder:
            peers.append(Recorder(channel))
            return peers[-1]

        process = Process("server")
        host = process.call(network.host, "server")
        (await process.start(host.listen("", 9092, accept))).start()
        clients: list[Recorder] = []

        def begin(channel: Channel) -> Recorder:
            clients.append(Recorder(channel))
            return clients[-1]

        await network.host("client").connect("server", 9092, begin)
        process.kill()
        await asyncio.sleep(1)
        assert clients[0].is_closed
        assert not peers[0].is_closed  # The dead hear nothing.
        with pytest.raises(ConnectionRefusedError):
            await network.host("client").connect("server", 9092, begin)
        process.bury()

    run(world)


def test_a_seed_gives_the_same_trace_and_another_seed_another() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        server.on_data = lambda peer: peer.channel.send([bytes(peer.data[-3:])])
        for number in range(50):
            client.channel.send([bytes([number]) * number])
            await asyncio.sleep(0.001)

    assert run(world, 7) == run(world, 7)
    assert run(world, 7) != run(world, 8)
