"""Requests that Kafka's brokers pass on in an envelope."""

from typing import Any

import pytest

from ottla.broker.node.broker import Broker
from ottla.broker.wire import responses
from ottla.client.dialer import Dialer
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.principal import ANONYMOUS, Origin, Principal
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages import (
    add_raft_voter,
    create_topics,
    envelope,
    metadata,
    remove_raft_voter,
    unregister_broker,
)
from ottla.protocol.principal import encode_principal
from tests.unit.broker.quorum_cluster import cluster_of
from tests.unit.broker.serving import Client, serving

CONTROLLER = "CONTROLLER"


def wrapped(request: Any, version: int) -> envelope.Request:  # noqa: ANN401
    header = RequestHeader(request.API_KEY, version, 77, "someone")
    data = encode_request_header(header) + encode(request, version)
    return envelope.Request(data, encode_principal(ANONYMOUS), b"\x7f\0\0\1")


def unwrapped(answer: envelope.Response, kind: type[Any], version: int) -> Any:  # noqa: ANN401
    assert answer.error_code == 0, answer
    assert answer.response_data is not None
    data = bytes(answer.response_data)
    correlation_id, position = decode_response_header(data, kind.API_KEY, version)
    assert correlation_id == 77
    return decode(kind, data[position:], version)


def ask(client: Client, request: Any, kind: type[Any], version: int) -> Any:  # noqa: ANN401
    return unwrapped(client.ask(wrapped(request, version), 0), kind, version)


async def ask_over_network(broker: Broker, request: envelope.Request) -> envelope.Response:
    address = broker.addresses[CONTROLLER]
    connection = await Dialer("test").dial(broker.env.network, address, timeout_ms=1000)
    try:
        return await connection.ask(request, envelope.Response, timeout_ms=1000)
    finally:
        connection.close()


@pytest.mark.parametrize("version", [4, 7])
def test_what_is_in_an_envelope_is_served_and_its_answer_wrapped(version: int) -> None:
    with serving() as world:
        topic = create_topics.CreatableTopic("t", 2, 1)
        request = create_topics.Request([topic])
        client = world.client(CONTROLLER)
        made = ask(client, request, create_topics.Response, version)
        assert made.topics[0].error_code == 0
        assert len(world.broker.image.topics_by_name["t"].partitions) == 2
        again = ask(client, request, create_topics.Response, version)
        assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("version", [4, 7])
def test_a_long_answer_is_wrapped_as_a_short_one(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "FEW", 0)
    with serving() as world:
        request = create_topics.Request([create_topics.CreatableTopic("t", 2, 1)])
        made = ask(world.client(CONTROLLER), request, create_topics.Response, version)
        assert [(topic.name, topic.error_code) for topic in made.topics] == [("t", 0)]


def test_a_refusal_of_the_whole_request_is_wrapped_too() -> None:
    with serving() as world:
        request = unregister_broker.Request(9)
        answer = ask(world.client(CONTROLLER), request, unregister_broker.Response, 0)
        assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (wrapped(metadata.Request(), 12), ErrorCode.INVALID_REQUEST),
        (wrapped(create_topics.Request(), 7), ErrorCode.NONE),
        (envelope.Request(b"\0", None, b""), ErrorCode.INVALID_REQUEST),
        (envelope.Request(b"", None, b""), ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_what_is_decided_here_is_taken_out(
    request_: envelope.Request, code: ErrorCode
) -> None:
    with serving() as world:
        assert world.client(CONTROLLER).ask(request_, 0).error_code == code


def test_a_request_that_is_cut_short_is_refused() -> None:
    whole = wrapped(create_topics.Request([create_topics.CreatableTopic("t", 1, 1)]), 7)
    with serving() as world:
        cut = envelope.Request(
            whole.request_data[:-9], whole.request_principal, whole.client_host_address
        )
        answer = world.client(CONTROLLER).ask(cut, 0)
        assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_clients_cannot_send_one() -> None:
    with serving() as world:
        assert ApiKey.ENVELOPE not in world.broker.dispatchers["PLAINTEXT"].served
        client = world.client()
        client.send(wrapped(create_topics.Request(), 7), 0)
        world.settle()
        assert not client.channel.is_open


def test_a_controller_that_is_not_the_active_one_says_so_outside() -> None:
    """What was asked for is not lost: the broker sends it to the one that is."""
    with cluster_of(3) as cluster:
        cluster.start()
        follower = cluster.followers[0].broker
        request = wrapped(create_topics.Request([create_topics.CreatableTopic("t", 1, 1)]), 7)
        answer = cluster.run(ask_over_network(follower, request))
        assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


@pytest.mark.parametrize("principal", [None, b"", b"\0\0\0", b"\0\1\x05User\1\0\0"])
def test_an_envelope_without_a_principal_is_refused(principal: bytes | None) -> None:
    whole = wrapped(create_topics.Request([create_topics.CreatableTopic("t", 1, 1)]), 7)
    whole.request_principal = principal
    with serving() as world:
        answer = world.client(CONTROLLER).ask(whole, 0)
        assert answer.error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
        assert "t" not in world.broker.image.topics_by_name


def test_a_forwarded_request_keeps_its_client_and_principal() -> None:
    origin = Origin(Principal("User", "alice"), "app", "10.1.2.3")
    with cluster_of(3) as cluster:
        cluster.start()
        dispatcher = cluster.leader.broker.dispatchers[CONTROLLER]
        decide, heard = dispatcher._deciders.submit, []

        async def noting(request: Any, origin: Origin) -> Any:  # noqa: ANN401
            heard.append((type(request), origin))
            return await decide(request, origin)

        dispatcher._deciders = dispatcher._deciders._replace(submit=noting)
        request = create_topics.Request([create_topics.CreatableTopic("t", 1, 1)])
        broker = cluster.followers[0].broker
        made = cluster.run(broker.submit(request, origin))
        assert made.topics[0].error_code == 0
        assert (create_topics.Request, origin) in heard
        requests = dispatcher._context.metrics.requests
        assert requests[ApiKey.ENVELOPE] == 1
        own = create_topics.Request([create_topics.CreatableTopic("own", 1, 1)])
        assert cluster.run(broker.submit(own)).topics[0].error_code == 0
        assert dispatcher._context.metrics.requests[ApiKey.ENVELOPE] == 1, (
            "its own is sent as it is"
        )


def test_a_refusal_of_a_forwarded_request_is_raised_as_from_beside_us() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        origin = Origin(ANONYMOUS, "app", "::1")
        for node in cluster.nodes.values():
            with pytest.raises(Refusal) as refused:
                cluster.run(node.broker.submit(unregister_broker.Request(77), origin))
            assert refused.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    "request_",
    [
        add_raft_voter.Request("other", 100, 4, b"4" * 16, [add_raft_voter.Listener("C", "h", 1)]),
        remove_raft_voter.Request("other", 2, b"2" * 16),
    ],
)
def test_a_change_of_voters_is_forwarded_in_an_envelope(request_: Any) -> None:  # noqa: ANN401
    origin = Origin(Principal("User", "alice"), "app", "10.1.2.3")
    with cluster_of(3) as cluster:
        cluster.start()
        requests = cluster.leader.broker.metrics.requests
        for count, node in enumerate(cluster.followers, start=1):
            with pytest.raises(Refusal) as refused:
                cluster.run(node.broker.quorum.requests.change_voters(request_, origin))
            assert refused.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID
            assert (requests[ApiKey.ENVELOPE], requests[request_.API_KEY]) == (count, 0)


def test_a_response_that_cannot_be_encoded_is_an_error_in_the_envelope_of_its_request() -> None:
    with serving() as world:
        client = world.client(CONTROLLER)
        dispatcher = world.broker.dispatchers[CONTROLLER]

        async def too_long(_: object, __: object) -> Any:  # noqa: ANN401
            return unregister_broker.Response(error_code=1 << 20)

        dispatcher._deciders = dispatcher._deciders._replace(submit=too_long)
        answer = client.ask(wrapped(unregister_broker.Request(9), 0), 0)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert client.channel.is_open
