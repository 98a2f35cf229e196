"""One stream: in order and whole, until something ends it."""

import asyncio

from ottla.env.files import FileRange
from ottla.simulation.world.network import SimulatedNetwork
from tests.unit.simulation.streams import OpenFile, pair, run


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
        assert network.sockets == []

    run(world)
