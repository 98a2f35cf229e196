"""The client's protocol: negotiation, correlation, bounds and what failures say. No I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    NotServed,
    Refused,
    ResponseTooLarge,
)
from ottla.client.frames import LENGTH
from ottla.client.protocol import CORRELATION_ID_MAX, FRAME_BYTES_MAX, ClientProtocol
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.header import decode_request_header
from ottla.protocol.messages import api_versions, describe_quorum, init_producer_id, metadata
from tests.unit.client.fake_broker import framed

SERVED = [api_versions.ApiVersion(ApiKey.METADATA, 2, 7), api_versions.ApiVersion(22, 0, 4)]


def versions(error_code: int = 0, served: object = SERVED) -> api_versions.Response:
    return api_versions.Response(error_code, served)


def negotiated(protocol: ClientProtocol, *answers: api_versions.Response) -> list[int]:
    """Perform the handshake with these answers; returns the versions that were asked in."""
    asked = []
    handshake = protocol.handshake()
    exchange = next(handshake)
    try:
        for answer in answers:
            asked.append(exchange.version)
            exchange = handshake.send(answer)
    except StopIteration:
        return asked
    raise AssertionError("the handshake wants more answers")


def opened(*, reuses_buffer: bool = False) -> ClientProtocol:
    protocol = ClientProtocol(Address("broker1", 9092), "test", reuses_buffer=reuses_buffer)
    negotiated(protocol, versions())
    return protocol


def feed(protocol: ClientProtocol, data: bytes, piece: int = 1 << 20) -> list[object]:
    found: list[object] = []
    while data:
        buffer = protocol.buffer()
        count = min(len(buffer), piece, len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        found += protocol.received(count)
    return found


def ask(protocol: ClientProtocol) -> bytes:
    """Send a request; returns the frame that answers it."""
    frame = protocol.encode(init_producer_id.Request(None), init_producer_id.Response, 4)
    header, _ = decode_request_header(memoryview(frame)[LENGTH.size :])
    answer = init_producer_id.Response(producer_id=header.correlation_id)
    return bytes(framed(answer, ApiKey.INIT_PRODUCER_ID, 4, header.correlation_id))


def test_the_newest_version_that_both_sides_speak_is_chosen() -> None:
    protocol = opened()
    assert protocol.version_for(metadata.Request) == 7
    assert protocol.version_for(metadata.Request, version_max=5) == 5
    with pytest.raises(NotServed, match="broker1:9092 does not serve METADATA"):
        protocol.version_for(metadata.Request, version_max=1)
    with pytest.raises(NotServed, match="DESCRIBE_QUORUM"):
        protocol.version_for(describe_quorum.Request)


def test_a_broker_that_does_not_know_our_newest_api_versions_is_asked_again() -> None:
    protocol = ClientProtocol(Address("broker1", 9092), "test")
    older = versions(ErrorCode.UNSUPPORTED_VERSION, [api_versions.ApiVersion(18, 0, 2)])
    assert negotiated(protocol, older, versions()) == [4, 2]
    assert protocol.api_versions.api_keys == SERVED


def test_unsupported_version_is_decoded_in_version_0() -> None:
    protocol = ClientProtocol(Address("broker1", 9092), "test")
    exchange = next(protocol.handshake())
    protocol.encode(*exchange)
    older = versions(ErrorCode.UNSUPPORTED_VERSION, [api_versions.ApiVersion(18, 0, 2)])
    [answer] = feed(protocol, bytes(framed(older, ApiKey.API_VERSIONS, 0, 1)))
    assert answer == older


def test_a_broker_that_refuses_the_handshake_is_told() -> None:
    protocol = ClientProtocol(Address("broker1", 9092), "test")
    with pytest.raises(Refused, match="broker1:9092"):
        negotiated(protocol, versions(ErrorCode.INVALID_REQUEST))


@given(st.integers(1, 300), st.integers(1, 20))
def test_each_request_gets_its_response_whatever_the_pieces(piece: int, count: int) -> None:
    protocol = opened()
    data = b"".join(ask(protocol) for _ in range(count))
    assert protocol.under_way == count
    found = feed(protocol, data, piece)
    assert [answer.producer_id for answer in found] == list(range(1, count + 1))
    assert protocol.under_way == 0


def test_a_request_without_a_response_is_not_waited_for() -> None:
    protocol = opened()
    protocol.encode(metadata.Request([]), None, 7)
    assert protocol.under_way == 0
    assert [answer.producer_id for answer in feed(protocol, ask(protocol))] == [2]


def test_correlation_ids_begin_again_after_the_largest() -> None:
    protocol = opened()
    protocol._correlation_id = CORRELATION_ID_MAX - 1
    data = ask(protocol) + ask(protocol)
    assert [answer.producer_id for answer in feed(protocol, data)] == [CORRELATION_ID_MAX, 0]


@pytest.mark.parametrize(
    ("sent", "kind", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ResponseTooLarge, "1213486160 bytes"),
        (LENGTH.pack(FRAME_BYTES_MAX + 1), ResponseTooLarge, "a record batch is too large"),
        (LENGTH.pack(-1), ConnectionLost, "-1 bytes announced; is this a Kafka broker"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", ConnectionLost, "answer 99 came, 1 was due"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x01\x00\x01", ConnectionLost, "ends too early"),
    ],
)
def test_malformed_bytes_end_the_connection(
    sent: bytes, kind: type[ClientError], said: str
) -> None:
    protocol = opened()
    ask(protocol)
    with pytest.raises(kind, match=said):
        feed(protocol, sent)


def test_a_peer_that_is_no_broker_is_told_before_the_handshake_is_done() -> None:
    protocol = ClientProtocol(Address("broker1", 9092), "test")
    protocol.encode(*next(protocol.handshake()))
    with pytest.raises(ConnectionLost, match="is this a Kafka broker"):
        feed(protocol, b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_response_that_nobody_waits_for_ends_the_connection() -> None:
    protocol = opened()
    data = ask(protocol)
    with pytest.raises(ConnectionLost, match="nobody waits for"):
        feed(protocol, data + data)


def test_responses_before_malformed_bytes_are_given_out() -> None:
    protocol = opened()
    data = ask(protocol)
    ask(protocol)
    data += b"\x00\x00\x00\x05\x00\x00\x00\x63\x00"
    protocol.buffer()[: len(data)] = data
    found = iter(protocol.received(len(data)))
    assert next(found).producer_id == 1
    with pytest.raises(ConnectionLost):
        next(found)


def test_what_ended_a_connection_is_said_to_later_requests() -> None:
    protocol = opened()
    assert str(protocol.lost()) == "the connection to broker1:9092 is closed"
    protocol.failure = protocol.timed_out(500)
    assert "no answer within 500 ms" in str(protocol.lost())
    assert str(protocol.closed_by_peer()) == "broker1:9092 closed the connection"
    assert str(protocol.closed()) == "the connection to broker1:9092 was closed"
