"""A connection: what it negotiates, how requests and answers meet, how it ends."""

import asyncio

import pytest

from ottla.client.connection import Connection
from ottla.client.errors import CannotConnect, ConnectionLost, NotServed, RequestTimeout
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import create_topics, describe_quorum, init_producer_id, metadata
from tests.unit.client.fake_broker import HANG_UP, PORT, SILENCE, World, settle

ADDRESS = Address("broker1", PORT)


async def opened(world: World, timeout_ms: int = 1000) -> Connection:
    return await Connection.open(world.host, ADDRESS, client_id="test", timeout_ms=timeout_ms)


def test_it_learns_which_versions_the_broker_serves() -> None:
    world = World()
    world.broker.ranges[ApiKey.METADATA] = range(2, 8)

    async def work() -> None:
        connection = await opened(world)
        assert connection.version_for(metadata.Request) == 7
        assert connection.version_for(metadata.Request, version_max=5) == 5
        with pytest.raises(NotServed, match="broker1:9092 does not serve METADATA"):
            connection.version_for(metadata.Request, version_max=1)
        with pytest.raises(NotServed, match="DESCRIBE_QUORUM"):
            connection.version_for(describe_quorum.Request)

    world.run(work)


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


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is this a Kafka broker"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", "answer 99 came, 2 was due"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02\x00\x01", "ends too early"),
    ],
)
def test_what_cannot_be_read_ends_the_connection(sent: bytes, said: str) -> None:
    world = World()
    world.broker.script[ApiKey.METADATA] = [sent]

    async def work() -> None:
        connection = await opened(world)
        with pytest.raises(ConnectionLost, match=said):
            await connection.ask(metadata.Request([]), metadata.Response, timeout_ms=500)

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


def test_nobody_listens() -> None:
    world = World()

    async def work() -> None:
        with pytest.raises(CannotConnect, match="cannot connect to broker7:9092: nothing listens"):
            await Connection.open(
                world.host, Address("broker7", PORT), client_id="test", timeout_ms=100
            )

    world.run(work)


def test_a_peer_that_accepts_but_never_answers_is_given_up() -> None:
    world = World()
    world.broker.script[ApiKey.API_VERSIONS] = [SILENCE]

    async def work() -> None:
        with pytest.raises(CannotConnect, match="no answer in time"):
            await opened(world, timeout_ms=300)
        assert world.clock.monotonic() < 400

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
