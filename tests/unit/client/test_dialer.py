"""Connections are opened with their handshake, or fail as CannotConnect with a reason."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from ottla.client.dialer import Dialer
from ottla.client.errors import CannotConnect, UnknownHost
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import create_topics
from tests.unit.client.fake_broker import PORT, SILENCE, World, settle

ADDRESS = Address("broker1", PORT)
DIALER = Dialer("test")


def test_a_connection_knows_what_the_broker_serves() -> None:
    world = World()
    world.broker.ranges[ApiKey.API_VERSIONS] = range(0, 3)

    async def work() -> None:
        connection = await DIALER.dial(world.host, ADDRESS, timeout_ms=1000)
        assert connection.version_for(create_topics.Request) == 7
        assert [version for _, version, _ in world.broker.requests] == [4, 2]

    world.run(work)


def test_nobody_listens() -> None:
    world = World()

    async def work() -> None:
        said = "cannot connect to broker7:9092: nothing listens"
        with pytest.raises(CannotConnect, match=said) as failure:
            await DIALER.dial(world.host, Address("broker7", PORT), timeout_ms=100)
        assert isinstance(failure.value.__cause__, ConnectionRefusedError)

    world.run(work)


def test_a_peer_that_accepts_but_never_answers_is_given_up() -> None:
    world = World()
    world.broker.script[ApiKey.API_VERSIONS] = [SILENCE]

    async def work() -> None:
        with pytest.raises(CannotConnect, match="no answer in time"):
            await DIALER.dial(world.host, ADDRESS, timeout_ms=300)
        assert world.clock.monotonic() < 400

    world.run(work)


def test_a_dial_that_is_cancelled_leaves_no_connection_open() -> None:
    world = World()
    world.broker.script[ApiKey.API_VERSIONS] = [SILENCE]

    async def work() -> None:
        dialing = asyncio.ensure_future(DIALER.dial(world.host, ADDRESS, timeout_ms=5000))
        await settle()
        assert world.broker.connections_closed == 0
        dialing.cancel()
        await settle()
        assert world.broker.connections_closed == 1

    world.run(work)


@pytest.fixture
def stranger() -> Iterator[Address]:
    """The address of a web server."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join()


def test_blocking_a_peer_that_is_no_broker_is_told(stranger: Address) -> None:
    with pytest.raises(CannotConnect, match="is this a Kafka broker"):
        DIALER.dial_blocking(stranger, timeout_ms=2000)


def test_blocking_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", held.getsockname()[1])
        with pytest.raises(CannotConnect, match=f"cannot connect to {address}: nothing listens"):
            DIALER.dial_blocking(address, timeout_ms=1000)


def test_blocking_a_peer_that_accepts_but_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(CannotConnect, match="no answer within 50 ms"):
            DIALER.dial_blocking(address, timeout_ms=50)


def test_blocking_a_host_without_an_address_is_told() -> None:
    with pytest.raises(UnknownHost, match=r"cannot connect to no\.such\.host\.invalid:9092"):
        DIALER.dial_blocking(Address("no.such.host.invalid", 9092), timeout_ms=1000)
