"""What a frame becomes: its header, bad input of every kind, and handlers that fail."""

import logging

import pytest

from ottla.broker.handlers import create_topics as create_topics_handler
from ottla.broker.handlers import metadata as metadata_handler
from ottla.broker.wire.apis import Entry
from ottla.broker.wire.dispatch import CLIENT_ID_BYTES_MAX
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import (
    api_versions,
    create_topics,
    describe_cluster,
    describe_configs,
    join_group,
    list_groups,
    metadata,
)
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.requests import batch, produce_request, write
from tests.unit.broker.serving import CONTROLLER, TOPIC_RESOURCE, Client, Closed, World, serving
from tests.unit.groups.driving import joining

NULL = b"\xff\xff"


def frame(api_key: int, version: int, rest: bytes, correlation_id: int = 1) -> bytes:
    start = api_key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    return start + correlation_id.to_bytes(4, "big", signed=True) + rest


def is_served(client: Client, *frames: bytes) -> bool:
    """Whether the client gets an answer, and keeps its connection."""
    client.feed(*frames)
    client.world.settle()
    return client.channel.is_open and len(client.frames()) == len(frames)


def asks(world: World, *frames: bytes) -> bool:
    return is_served(world.client(), *frames)


def test_client_ids_may_be_null_empty_long_or_no_text_at_all() -> None:
    with serving() as world:
        for client_id in (NULL, b"\x00\x00", b"\x00\x02ab", b"\x7f\xff" + b"x" * 32767):
            assert asks(world, frame(18, 0, client_id))
        assert asks(world, frame(18, 0, b"\x00\x02\xff\xfe"))
        assert asks(world, frame(3, 1, b"\x00\x02\xff\xfe" + b"\x00\x00\x00\x00"))
        world.topic()
        body = encode(produce_request(batch(b"a")), 8)
        assert asks(world, frame(0, 8, b"\x00\x02\xff\xfe" + body))


@pytest.mark.parametrize("character", ["x", "\xff"])
def test_a_client_id_of_any_length_makes_a_member_id_that_fits(character: str) -> None:
    with serving(**QUICK) as world:
        find(world)
        client = world.client()
        body = encode(joining(""), 4)
        name = (character * 32_767).encode("latin-1")
        client.feed(frame(ApiKey.JOIN_GROUP, 4, b"\x7f\xff" + name + body))
        world.until(lambda: bool(client.frames()))
        answer = decode(join_group.Response, client.frames()[0][4:], 4)
        shown = name.decode(errors="replace")[:CLIENT_ID_BYTES_MAX]
        assert answer.member_id.startswith(f"{shown}-")


def test_a_name_that_grows_beyond_a_string_closes_the_connection() -> None:
    with serving(**QUICK) as world:
        find(world)
        request = joining("")
        request.group_id = "g" * 32_767
        body = encode(request, 4).replace(b"g" * 32_767, b"\xff" * 32_767)
        client = world.client()
        client.feed(frame(ApiKey.JOIN_GROUP, 4, NULL + body))
        world.settle()
        assert not client.channel.is_open
        for version in range(5):
            assert world.client().ask(list_groups.Request(), version).groups == []


def test_what_is_no_request_closes_the_connection_without_an_answer() -> None:
    with serving() as world:
        bad = {
            "nothing but a key": b"\x00\x12",
            "a header cut short": frame(18, 0, b"\x00")[:9],
            "an unknown key": frame(9999, 0, NULL),
            "a negative key": frame(-1, 0, NULL),
            "a key that is not served": frame(ApiKey.VOTE, 0, NULL + bytes(20)),
            "a version too high": frame(3, 100, NULL + bytes(10)),
            "a negative version": frame(3, -1, NULL + bytes(10)),
            "a client id beyond the frame": frame(3, 1, b"\x00\x64abc"),
            "a body cut short": frame(3, 1, NULL + b"\x00\x00\x00"),
            "more topics than bytes": frame(3, 1, NULL + b"\x7f\xff\xff\xff"),
            "a varint without end": frame(3, 9, NULL + b"\x00" + b"\xff" * 12),
            "tags beyond the frame": frame(3, 9, NULL + b"\x05\x01\x7f"),
        }
        for what, data in bad.items():
            client = world.client()
            client.feed(data)
            world.settle()
            assert not client.channel.is_open, what
            assert not client.channel.sent, what
        assert world.broker.metrics.protocol_errors == len(bad)


def test_a_short_frame_does_not_read_on_in_the_next_one() -> None:
    with serving() as world:
        client = world.client()
        client.feed(b"\x00\x12", frame(18, 0, NULL), frame(18, 0, NULL))
        world.settle()
        assert not client.channel.is_open
        assert not client.channel.sent


def test_tags_and_bytes_that_nobody_knows_are_skipped() -> None:
    with serving() as world:
        body = encode(metadata.Request(topics=[]), 9)
        tags = b"\x02\x07\x03abc\x08\x00"
        assert asks(world, frame(3, 9, NULL + tags + body))
        assert asks(world, frame(3, 9, NULL + b"\x00" + body + b"trailing bytes"))
        assert asks(world, frame(18, 0, NULL + b"trailing bytes"))


def test_one_connections_garbage_harms_no_other() -> None:
    with serving() as world:
        world.topic()
        honest = world.client()
        for garbage in (b"\x00", b"\xff" * 100, frame(0, 9, NULL + b"\x00" * 30), bytes(2000)):
            world.client().feed(garbage)
            assert honest.ask(produce_request(batch(b"a")), 12).responses
        assert len(world.broker.connections.open) >= 1


def test_requests_behind_a_bad_one_are_not_served() -> None:
    with serving() as world:
        client = world.client()
        before = world.broker.metrics.requests[ApiKey.METADATA]
        client.feed(frame(9999, 0, NULL), frame(3, 1, NULL + bytes(4)))
        world.settle()
        assert world.broker.metrics.requests[ApiKey.METADATA] == before


def test_the_controllers_door_offers_what_is_the_controllers() -> None:
    with serving() as world:
        keys = {
            key.api_key
            for key in world.client(CONTROLLER).ask(api_versions.Request("a", "1"), 3).api_keys
        }
        assert {ApiKey.VOTE, ApiKey.BROKER_HEARTBEAT, ApiKey.CREATE_TOPICS, ApiKey.FETCH} < keys
        assert not keys & {ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.JOIN_GROUP}
        client = world.client(CONTROLLER)
        client.feed(frame(ApiKey.METADATA, 1, NULL + bytes(4)))
        assert not client.channel.is_open
        answer = world.client(CONTROLLER).ask(describe_cluster.Request(endpoint_type=2), 1)
        assert answer.error_code == 0


def fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """Have Metadata's handler raise; its entry is made with its first request."""

    def raises(*_: object) -> None:
        raise error

    raises.request_class = metadata.Request  # type: ignore[attr-defined]
    monkeypatch.setattr(metadata_handler, "handle", raises)
    world.broker.dispatchers["PLAINTEXT"]._entries.pop(ApiKey.METADATA, None)


def test_a_handler_that_fails_is_answered_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving() as world:
        client = world.client()
        fail_with(ZeroDivisionError("by nothing"), monkeypatch, world)
        request = metadata.Request(topics=[metadata.MetadataRequestTopic(name="t")])
        answer = client.ask(request, 9)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert client.channel.is_open
        assert world.broker.metrics.server_errors == 1
        assert "METADATA failed" in caplog.text
        fail_with(Refusal(ErrorCode.NOT_CONTROLLER, "not here"), monkeypatch, world)
        assert client.ask(request, 9).topics[0].error_code == ErrorCode.NOT_CONTROLLER
        assert world.broker.metrics.server_errors == 1


def test_a_failed_assert_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as world:
        fail_with(AssertionError("this cannot be"), monkeypatch, world)
        client = world.client()
        with pytest.raises(AssertionError, match="this cannot be"):
            client.send(metadata.Request(topics=[]), 9)


def test_a_fast_path_that_fails_costs_its_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: object) -> bool:
        raise ZeroDivisionError

    with serving() as world:
        world.topic()
        write(world, b"a")
        entries = world.broker.dispatchers["PLAINTEXT"]._entries
        known: Entry = entries[ApiKey.PRODUCE]
        entries[ApiKey.PRODUCE] = known._replace(raw=fails)
        world.broker.prepared_produces.forget()
        client = world.client()
        client.send(produce_request(batch(b"b")), 12)
        assert not client.channel.is_open
        assert world.broker.metrics.server_errors == 1
        entries[ApiKey.PRODUCE] = known
        assert write(world, b"c") == 1
        assert "ZeroDivisionError" in caplog.text
        assert len(world.errors) == 1  # A simulation is told of it.
        world.errors.clear()


@pytest.mark.parametrize("version", [2, 7])
def test_a_name_as_long_as_a_string_can_be_is_answered(version: int) -> None:
    with serving() as world:
        name = "x" * 32_767
        request = create_topics.Request(topics=[create_topics.CreatableTopic(name, 1, 1)])
        answer = world.client().ask(request, version)
        assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert answer.topics[0].name == name


def test_an_answer_that_cannot_be_encoded_ends_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handle(*_: object) -> create_topics.Response:
        return create_topics.Response(topics=[create_topics.CreatableTopicResult("x" * 40_000)])

    handle.request_class = create_topics.Request  # type: ignore[attr-defined]
    monkeypatch.setattr(create_topics_handler, "handle", handle)
    with serving() as world:
        request = create_topics.Request(topics=[create_topics.CreatableTopic("t", 1, 1)])
        with pytest.raises(Closed):
            world.client().ask(request, 2)
        assert len(caplog.text) < 10_000
        assert not world.broker.failed.done()


def test_requests_are_counted_by_their_api() -> None:
    with serving() as world:
        world.topic()
        for _ in range(3):
            write(world, b"a")
        assert world.broker.metrics.requests[ApiKey.PRODUCE] == 3
        assert world.broker.metrics.bytes_in == 3 * len(batch(b"a"))


def test_a_handler_is_imported_with_its_first_request() -> None:
    with serving() as world:
        entries = world.broker.dispatchers["PLAINTEXT"]._entries
        assert entries == {}
        world.client().ask(api_versions.Request("a", "1"), 3)
        assert list(entries) == [ApiKey.API_VERSIONS]


def test_a_coroutine_whose_client_is_gone_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with serving() as world:
        client = world.client()
        client.send(create_topics.Request(topics=[create_topics.CreatableTopic("t", 1, 1)]))
        client.close()
        world.settle()
        assert "t" in world.broker.image.topics_by_name
        assert not caplog.text


def long_metadata(world: World, client: Client) -> int:
    """A request that takes a whole turn's budget."""
    names = ["x" * 200 + str(number) for number in range(300)]
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return client.send(metadata.Request(topics, allow_auto_topic_creation=False))


def test_long_requests_of_many_clients_are_served_in_turns_of_their_own() -> None:
    with serving() as world:
        clients = [world.client() for _ in range(6)]
        sent = [long_metadata(world, client) for client in clients]
        world.end_turn()
        answered = [client.has_answer(n) for client, n in zip(clients, sent, strict=True)]
        assert 0 < sum(answered) < len(clients)
        world.settle()
        assert all(client.has_answer(n) for client, n in zip(clients, sent, strict=True))
        assert world.broker.memory.used_bytes == 0


def test_no_request_overtakes_a_long_one_of_its_connection() -> None:
    with serving() as world:
        long_metadata(world, world.client())  # The turn's budget is spent.
        client = world.client()
        sent = long_metadata(world, client)
        later = client.send(describe_cluster.Request())
        assert not client.has_answer(sent)
        world.settle()
        assert client.has_answer(sent)
        assert client.has_answer(later)


def test_a_long_request_that_is_malformed_costs_its_own_connection() -> None:
    with serving() as world:
        long_metadata(world, world.client())
        client, other = world.client(), world.client()
        client.feed(frame(3, 1, NULL + b"\x7f\xff\xff\xff" + bytes(2000)))
        sent = long_metadata(world, other)
        assert client.channel.is_open
        world.settle()
        assert not client.channel.is_open
        assert other.has_answer(sent)
        assert world.broker.metrics.protocol_errors == 1


def test_a_client_that_goes_while_its_long_request_waits_is_not_served() -> None:
    with serving() as world:
        long_metadata(world, world.client())
        client = world.client()
        long_metadata(world, client)
        client.close()
        world.settle()
        assert world.broker.memory.used_bytes == 0


def configs_of(world: World, client: Client, name: str) -> int:
    resource = describe_configs.DescribeConfigsResource(TOPIC_RESOURCE, name)
    return client.send(describe_configs.Request([resource]))


def test_requests_with_tasks_of_their_own_are_served_one_by_one_on_a_connection() -> None:
    """Else the hundreds that one client has sent would all come before another's first."""
    with serving() as world:
        world.topic()
        client, other = world.client(), world.client()
        sent = [configs_of(world, client, "t") for _ in range(100)]
        assert len(client.connection.replies) == 1
        later = client.send(api_versions.Request("test", "1"), 3)
        answers = configs_of(world, other, "t")
        world.until(lambda: other.has_answer(answers))
        assert not client.has_answer(sent[-1])
        world.until(lambda: client.has_answer(later))
        assert list(client.answers()) == [*sent, later]


def test_decisions_of_a_controller_do_not_wait_for_each_other() -> None:
    with serving() as world:
        client = world.client(CONTROLLER)
        for name in "ab":
            client.send(create_topics.Request(topics=[create_topics.CreatableTopic(name, 1, 1)]))
        assert len(client.connection.replies) == 2
        world.settle()
        assert {"a", "b"} <= set(world.broker.image.topics_by_name)


def test_large_request_that_waits_for_its_time_stays_where_it_was_received() -> None:
    with serving() as world:
        world.topic("t")
        long_metadata(world, world.client())  # The turn's budget is spent.
        client = world.client()
        request = produce_request(batch(b"x" * (300 << 10)), "t")
        request.topic_data.append(produce_request(batch(b"y"), "missing").topic_data[0])
        sent = client.send(request, 7)
        assert not client.connection.replies
        assert client.connection._large is not None
        assert world.broker.metrics.requests[ApiKey.PRODUCE] == 0
        world.settle()
        codes = [t.partition_responses[0].error_code for t in client.answers()[sent].responses]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert world.broker.memory.used_bytes == 0
        assert world.broker.metrics.requests[ApiKey.PRODUCE] == 1
