"""The simulated network: who finds whom, what gets lost, and that a seed decides all of it."""

import asyncio

import pytest

from ottla.env.network import Channel
from ottla.simulation.world.loop import MILLISECOND
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.process import Process
from tests.unit.simulation.streams import Recorder, pair, run


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
        await asyncio.sleep(0.001)  # Until the server has polled.
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


def test_a_host_goes_on_after_the_process_that_woke_it_was_killed() -> None:
    async def world(network: SimulatedNetwork) -> None:
        peers: list[Recorder] = []

        def accept(channel: Channel) -> Recorder:
            peers.append(Recorder(channel))
            return peers[-1]

        async def serve(process: Process) -> None:
            listening = await network.host("server").listen("", 9092, accept)
            listening.start()

        first = Process("server/1")
        await first.start(serve(first))
        client = network.host("client")
        channel = await client.connect("server", 9092, Recorder)
        # More than may be under way: the server's reads let the client send the rest.
        channel.send([bytes(4 << 20)])
        was_read = asyncio.Event()
        await asyncio.sleep(0.00001)  # Until the server has polled.
        peers[0].on_data = lambda _: was_read.set()
        await was_read.wait()
        first.kill()
        second = Process("server/2")
        await second.start(serve(second))
        again = await client.connect("server", 9092, Recorder)
        again.send([b"hello"])
        await asyncio.sleep(1)
        assert peers[1].data == b"hello"
        first.bury()

    run(world)


def test_a_cut_in_one_direction_holds_up_what_goes_there_and_nothing_else() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        network.cut(["client"], ["server"], 5_000 * MILLISECOND)
        client.channel.send([b"to"])
        server.channel.send([b"fro"])
        await asyncio.sleep(1)
        assert (server.data, client.data) == (b"", b"fro")
        await asyncio.sleep(5)
        assert server.data == b"to"

    run(world)


def test_who_gets_no_answer_does_not_connect_until_the_cut_is_over() -> None:
    async def world(network: SimulatedNetwork) -> None:
        await pair(network)
        network.cut(["server"], ["client"], 5_000 * MILLISECOND)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(4):
                await network.host("client").connect("server", 9092, Recorder)
        async with asyncio.timeout(2):
            await network.host("client").connect("server", 9092, Recorder)

    run(world)


def test_a_slow_link_is_slow_for_a_while() -> None:
    async def world(network: SimulatedNetwork) -> None:
        network.slow_down("client", "server", 60_000 * MILLISECOND, 1_000 * MILLISECOND)

        def delay_ns(sender: str, receiver: str) -> int:
            return network.arrival_ns(sender, receiver) - network.loop.now_ns

        assert max(delay_ns("client", "server") for _ in range(20)) > 10_000 * MILLISECOND
        assert max(delay_ns("server", "client") for _ in range(20)) < 10 * MILLISECOND
        await asyncio.sleep(2)
        assert max(delay_ns("client", "server") for _ in range(20)) < 10 * MILLISECOND

    run(world)


@pytest.mark.parametrize("is_closed", [False, True])
def test_nothing_that_a_host_sent_arrives_after_its_connections_are_reset(is_closed: bool) -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        network.clog("server", 1000 * MILLISECOND)
        server.channel.send([b"hello"])
        await asyncio.sleep(0.01)
        if is_closed:
            server.channel.close()
            await asyncio.sleep(0.01)
        network.reset_all("server")
        await asyncio.sleep(5)
        assert client.is_closed
        assert not client.data

    run(world)


def test_a_host_without_power_says_nothing_until_it_is_back() -> None:
    async def world(network: SimulatedNetwork) -> None:
        client, server = await pair(network)
        network.power_off("server")
        client.channel.send([b"?"])
        await asyncio.sleep(5)
        assert not client.is_closed
        assert not server.is_closed
        connecting = asyncio.ensure_future(network.host("client").connect("server", 9092, Recorder))
        await asyncio.sleep(5)
        assert not connecting.done(), "nobody refuses"
        network.power_on("server")
        await asyncio.sleep(1)
        assert client.is_closed
        assert connecting.done()

    run(world)


def test_a_paused_process_accepts_and_reads_when_it_goes_on() -> None:
    async def world(network: SimulatedNetwork) -> None:
        peers: list[Recorder] = []

        def accept(channel: Channel) -> Recorder:
            peers.append(Recorder(channel))
            return peers[-1]

        process = Process("server")
        host = process.call(network.host, "server")
        (await process.start(host.listen("", 9092, accept))).start()
        process.pause()
        channel = await network.host("client").connect("server", 9092, Recorder)
        await network.host("client").connect("server", 9092, Recorder)
        channel.send([b"hello"])
        await asyncio.sleep(1)
        assert peers == []
        network.sockets[-1].reset()  # The end that is not accepted yet.
        await asyncio.sleep(1)
        process.resume()
        await asyncio.sleep(1)
        assert [bytes(peer.data) for peer in peers] == [b"hello", b""]
        assert [peer.is_closed for peer in peers] == [False, True]

    run(world)
