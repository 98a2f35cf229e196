"""What listens and connects on loopback; what the channels carry is tested beside them."""

import asyncio

import pytest

from ottla.env.network import Channel
from ottla.env.sockets import SocketNetwork
from tests.unit.env.test_channels import Answering, run


def test_a_port_in_use_is_refused_by_the_system() -> None:
    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, lambda channel: Answering(channel, []))
        with pytest.raises(OSError, match="in use"):
            await network.listen("127.0.0.1", door.address.port, lambda c: Answering(c, []))
        door.close()

    run(test)


def test_both_ends_of_a_connection_are_channels() -> None:
    async def test(network: SocketNetwork) -> None:
        made: asyncio.Queue[Channel] = asyncio.Queue()

        def accept(channel: Channel) -> Answering:
            made.put_nowait(channel)
            return Answering(channel, [])

        door = await network.listen("127.0.0.1", 0, accept)
        door.start()
        near = await network.connect(*door.address, lambda channel: Answering(channel, []))
        far = await made.get()
        assert near.remote == door.address
        assert far.remote.host == "127.0.0.1"
        near.close()
        far.close()
        door.close()

    run(test)


def test_connecting_to_nobody_is_refused() -> None:
    async def test(network: SocketNetwork) -> None:
        door = await network.listen("127.0.0.1", 0, lambda channel: Answering(channel, []))
        door.close()
        with pytest.raises(ConnectionRefusedError):
            await network.connect(*door.address, lambda channel: Answering(channel, []))

    run(test)
