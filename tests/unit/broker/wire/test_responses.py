"""A response in its frame; the handlers' tests have their contents."""

import asyncio

import pytest

from ottla.broker.wire.batch_scans import TURN_US
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import FEW, Encoded, Lazy, respond, send
from ottla.protocol.codec import encode
from ottla.protocol.encoder_source import STEP
from ottla.protocol.messages import heartbeat, join_group, list_groups, metadata, vote
from tests.unit.broker.serving import Client, World, serving


def reply_to(client: Client, version: int) -> Reply:
    deciders = client.world.broker.dispatchers["PLAINTEXT"]._deciders
    return Reply(client.connection, 7, version, "test", deciders)


@pytest.mark.parametrize(("version", "size"), [(3, 10), (4, 12)])
def test_a_response_has_its_size_and_correlation_id_and_tags_if_flexible(
    version: int, size: int
) -> None:
    with serving() as world:
        client = world.client()
        reply = reply_to(client, version)
        client.connection.expect(reply)
        send(reply, heartbeat.Response(error_code=22))
        assert len(client.channel.sent) == 4 + size
        assert client.channel.sent[:8] == size.to_bytes(4) + (7).to_bytes(4)


def test_a_response_that_cannot_be_encoded_costs_its_own_connection() -> None:
    with serving() as world:
        other = world.client()
        for response in (
            join_group.Response(member_id="\ufffd" * 32_767),  # Three bytes each.
            heartbeat.Response(error_code=1 << 20),
            vote.Response(node_endpoints=[vote.NodeEndpoint(1, "h", 1)]),  # Not in version 0.
        ):
            client = world.client()
            reply = reply_to(client, 0)
            client.connection.expect(reply)
            send(reply, response)
            assert not client.channel.is_open
        (failure,) = world.errors  # A mistake of ours, and not of the client.
        assert "node_endpoints" in str(failure["exception"])
        world.errors.clear()
        assert other.ask(metadata.Request(), 1).brokers


@pytest.mark.parametrize("version", [3, 4])
def test_a_response_that_is_encoded_already_has_the_same_frame(version: int) -> None:
    with serving() as world:
        response = heartbeat.Response(error_code=22)
        sent = []
        for one in (response, Encoded(heartbeat.Response, encode(response, version))):
            client = world.client()
            reply = reply_to(client, version)
            client.connection.expect(reply)
            send(reply, one)
            sent.append(bytes(client.channel.sent))
        assert sent[0] == sent[1]


def test_a_closed_connection_is_sent_nothing() -> None:
    with serving() as world:
        client = world.client()
        reply = reply_to(client, 4)
        client.close()
        send(reply, heartbeat.Response())
        assert reply.pieces is None


def listed(count: int) -> list_groups.Response:
    made = Lazy(range(count), lambda n: list_groups.ListedGroup(f"group {n}"))
    return list_groups.Response(groups=made)  # type: ignore[arg-type]


def answer_with(world: World, client: Client, count: int) -> Reply:
    reply = reply_to(client, 4)
    client.connection.expect(reply)
    respond(reply, lambda: listed(count), count, world.broker)
    return reply


@pytest.mark.parametrize("count", [0, FEW, STEP, STEP + 1, 5 * STEP])
def test_a_long_response_is_the_same_as_one_that_is_sent_at_once(count: int) -> None:
    with serving() as world:
        client, other = world.client(), world.client()
        answer_with(world, client, count)
        world.settle()
        reply = reply_to(other, 4)
        other.connection.expect(reply)
        send(reply, listed(count))
        assert client.channel.sent == other.channel.sent
        assert client.channel.is_reading


def test_a_long_response_takes_several_turns_while_its_connection_is_held() -> None:
    with serving() as world:
        client = world.client()
        reply = answer_with(world, client, 60 * STEP)
        turns = 0
        while reply.pieces is None:
            assert not client.channel.is_reading
            world.run(asyncio.sleep(0))
            turns += 1
        assert turns >= 5
        world.settle()
        assert client.channel.is_reading


def test_answers_of_medium_length_share_a_turn() -> None:
    with serving() as world:
        clients = [world.client() for _ in range(20)]
        replies = [answer_with(world, client, STEP) for client in clients]
        at_once = sum(reply.pieces is not None for reply in replies)
        assert at_once == TURN_US // (STEP * 5)
        world.settle()
        assert all(reply.pieces is not None for reply in replies)


@pytest.mark.parametrize("turns", range(6))
def test_nobody_is_answered_who_goes_meanwhile(turns: int) -> None:
    with serving() as world:
        client = world.client()
        reply = answer_with(world, client, 60 * STEP)
        for _ in range(turns):
            world.run(asyncio.sleep(0))
        client.close()
        world.settle()
        assert reply.pieces is None


def test_a_long_response_that_cannot_be_encoded_costs_its_connection() -> None:
    with serving() as world:
        client = world.client()
        reply = reply_to(client, 4)
        client.connection.expect(reply)
        respond(reply, lambda: heartbeat.Response(error_code=1 << 20), 10_000, world.broker)
        world.settle()
        assert not client.channel.is_open
