"""A connection over the network seam: how requests and answers meet, how it ends."""

import asyncio

import pytest

from ottla.client.connection import Connection
from ottla.client.dialer import Dialer
from ottla.client.errors import ConnectionLost, RequestTimeout
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import create_topics, init_producer_id, metadata
from tests.unit.client.fake_broker import HANG_UP, PORT, SILENCE, World, settle

ADDRESS = Address("broker1", PORT)


async def opened(world: World) -> Connection:
    return await Dialer("test").dial(world.host, ADDRESS, timeout_ms=1000)


def test_a_broker_that_does_not_know_our_newest_api_versions_is_asked_again() -> None:
    world = World()
    world.broker.ranges[ApiKey.API_VERSIONS] = range(0, 3)

    async def work() -> None:
        connection = await opened(world)
        assert connection.version_for(create_topics.Request) == 7
        versions = [version for key, version, _ in world.broker.requests]
        assert versions == [4, 2]

    world.run(work)


def test_many_requests_are_under_way_and_each_gets_its_own_answer() -> None:
    world = World()

    async def work() -> None:
        connection = await opened(world)
        request = init_producer_id.Request(None)
        futures = [connection.send(request, init_producer_id.Response) for _ in range(20)]
        assert connection.under_way == 20
        answers = await asyncio.gather(*futures)
        assert [answer.producer_id for answer in answers] == list(range(1001, 1021))
        assert connection.under_way == 0

    world.run(work)


def test_silence_ends_the_connection_and_all_that_is_under_way() -> None:
    world = World()
    world.broker.script[ApiKey.METADATA] = [SILENCE, SILENCE]

    async def work() -> None:
        connection = await opened(world)
        other = connection.send(metadata.Request([]), metadata.Response)
        with pytest.raises(RequestTimeout, match="no answer within 500 ms"):
            await connection.ask(metadata.Request([]), metadata.Response, timeout_ms=500)
        assert world.clock.monotonic() < 600
        assert isinstance(other.exception(), RequestTimeout)
        with pytest.raises(ConnectionLost):
            await connection.send(metadata.Request([]), metadata.Response)

    world.run(work)


def test_a_broker_that_hangs_up_fails_what_is_under_way() -> None:
    world = World()
    world.broker.script[ApiKey.METADATA] = [HANG_UP]

    async def work() -> None:
        connection = await opened(world)
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await connection.ask(metadata.Request([]), metadata.Response, timeout_ms=500)
        assert not connection.is_open

    world.run(work)


def test_malformed_bytes_end_the_connection() -> None:
    world = World()
    world.broker.script[ApiKey.METADATA] = [b"\x00\x00\x00\x05\x00\x00\x00\x63\x00"]

    async def work() -> None:
        connection = await opened(world)
        with pytest.raises(ConnectionLost, match="answer 99 came, 2 was due"):
            await connection.ask(metadata.Request([]), metadata.Response, timeout_ms=500)
        assert not connection.is_open

    world.run(work)


def test_an_answer_that_nobody_waits_for_ends_the_connection() -> None:
    world = World()

    async def work() -> None:
        connection = await opened(world)
        world.broker.script[ApiKey.METADATA] = [SILENCE]
        connection.send_unanswered(metadata.Request([]), version=9)
        world.broker.script[ApiKey.INIT_PRODUCER_ID] = [
            lambda request, version: init_producer_id.Response()
        ]
        connection.send_unanswered(init_producer_id.Request(None), version=4)
        await settle()
        assert not connection.is_open

    world.run(work)


def test_an_answer_for_one_who_gave_up_is_dropped_and_the_next_is_right() -> None:
    world = World()

    async def work() -> None:
        connection = await opened(world)
        request = init_producer_id.Request(None)
        given_up = connection.send(request, init_producer_id.Response)
        given_up.cancel()
        answer = await connection.ask(request, init_producer_id.Response, timeout_ms=500)
        assert answer.producer_id == 1002

    world.run(work)


def test_request_without_answer_to_a_peer_without_power_closes_the_connection() -> None:
    world = World()

    async def work() -> None:
        connection = await opened(world)
        world.network.power_off("broker1")
        for _ in range(200):  # More than the socket buffers take.
            connection.send_unanswered(init_producer_id.Request("x" * 30_000), version=4)
        await connection.wait_sent(2000)
        assert world.clock.monotonic() >= 2000
        assert not connection.is_open

    world.run(work)
